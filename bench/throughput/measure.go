package throughput

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the database whose counters are read
	"github.com/redis/go-redis/v9"
)

// clockTick is the unit of the processor times in /proc: Linux reports the same unit to programs on every machine.
const clockTick = 10 * time.Millisecond

// meter reads what a turn costs the servers.
type meter struct {
	db   *sql.DB // nil: not a server
	rdb  *redis.Client
	pids map[string][]int
}

func newMeter(s *stores, pids map[string][]int) (*meter, error) {
	m := &meter{pids: pids}
	options, err := redis.ParseURL(s.redis.URL())
	if err != nil {
		return nil, err
	}
	m.rdb = redis.NewClient(options)
	if s.mariadb != nil {
		m.db, err = sql.Open("mysql", s.mariadb.DSN())
	}
	return m, err
}

func (m *meter) Close() error {
	if m.db != nil {
		m.db.Close()
	}
	return m.rdb.Close()
}

// counters are the totals of the servers at one moment.
type counters struct {
	sql, commits, redis int64
	cpu                 map[string]time.Duration // by kind of process
	others              time.Duration            // of the processes that are no part of the run
}

// read asks the servers. Its own requests are among those that they count, a handful.
func (m *meter) read(ctx context.Context) (c counters, err error) {
	if m.db != nil {
		for name, n := range map[string]*int64{"Questions": &c.sql, "Com_commit": &c.commits} {
			if err := m.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(new(string), n); err != nil {
				return c, fmt.Errorf("counters of the database: %w", err)
			}
		}
	}
	info, err := m.rdb.Info(ctx, "stats").Result()
	if err != nil {
		return c, fmt.Errorf("counters of redis: %w", err)
	}
	c.redis, _ = strconv.ParseInt(field(info, "total_reads_processed:"), 10, 64)
	c.cpu = map[string]time.Duration{}
	c.others = machineTime()
	for kind, pids := range m.pids {
		for _, pid := range pids {
			c.cpu[kind] += processorTime(pid)
		}
		c.others -= c.cpu[kind]
	}
	return c, nil
}

// machineTime is what all processes of the machine have used, or 0 where the system does not report it.
func machineTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var ticks int64
	for i, f := range strings.Fields(field(string(b), "cpu ")) {
		if n, _ := strconv.ParseInt(f, 10, 64); i < 3 { // user, nice, system
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}

// processorTime is what a process has used, or 0 where the system does not report it.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program may have spaces; behind it utime and stime are the 12th and 13th.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
