package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore"
)

const (
	examineTimeout = 10 * time.Second // for all questions to one store
	pings          = 5                // of which the median counts
	farAway        = 50 * time.Millisecond
	clocksDiffer   = time.Second
)

// Verdict says whether an order could be placed.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // an order could be placed, and an operator should change something
	Fail Verdict = "fail" // an order could not be placed: an instance does not start, or a strategy is refused
)

// Check is one fact about a store. No field has a secret.
type Check struct {
	Store   string  `json:"store"`
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Value   string  `json:"value"`
	Change  string  `json:"change,omitempty"` // what to change, unless the verdict is OK
}

// Examine checks the stores that c names, at the same time. Each has 10 s. It stores no order.
func Examine(ctx context.Context, c Config) []Check {
	redis.SetLogger(silent{})
	var answers [5][]Check
	var asked sync.WaitGroup
	for i, of := range []struct {
		store string
		ask   func(context.Context, Config, *closers) []Check
	}{{c.Database, examineDatabase}, {c.Redis, examineRedis}, {c.Redlock, examineRedlock}, {c.ZooKeeper, examineZooKeeper}, {c.Etcd, examineEtcd}} {
		if of.store == "" {
			continue
		}
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, examineTimeout)
			defer cancel()
			var opened closers
			defer func() { opened.close(ctx, slog.New(slog.DiscardHandler)) }()
			answers[i] = of.ask(ctx, c, &opened)
		})
	}
	asked.Wait()
	return slices.Concat(answers[:]...)
}

// report is what is found about one store, in order.
type report struct {
	store  string
	checks []Check
}

// add adds a check whose verdict is OK if good, and otherwise the given one.
func (r *report) add(check, value string, good bool, otherwise Verdict, change string) {
	c := Check{Store: r.store, Check: check, Verdict: OK, Value: value}
	if !good {
		c.Verdict, c.Change = otherwise, change
	}
	r.checks = append(r.checks, c)
}

func (r *report) note(check, value string) { r.add(check, value, true, OK, "") }

// need adds a check that must succeed. The text of an error takes the place of the value, and what it says is to be changed
// that of the change.
func (r *report) need(check, value string, err error, otherwise Verdict, change string) {
	if err != nil {
		value = strings.ReplaceAll(err.Error(), "\n", "; ")
		if hint := sqldb.Hint(err); hint != "" {
			value, change = strings.TrimSuffix(value, ": "+hint), hint
		}
	}
	r.add(check, value, err == nil, otherwise, change)
}

// clock adds how far the clock of a store is ahead of that of this machine, of which half a round trip is unknown.
func (r *report) clock(ask func() (time.Time, error)) {
	began := time.Now()
	there, err := ask()
	ahead := there.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond)
	if err == nil {
		r.add("clock", fmt.Sprintf("%+dms", ahead.Milliseconds()), ahead.Abs() < clocksDiffer, Warn, "synchronize the clocks of the machines: times in logs and orders differ")
	}
}

// latency adds the median time of a question.
func (r *report) latency(ask func() error) {
	if took, err := median(ask); err == nil {
		r.add("latency", text(took), took < farAway, Warn, "run the instance nearer to the store: an order waits for several round trips")
	}
}

// lock acquires and releases a lock as an order does, under a key that no order has.
func (r *report) lock(ctx context.Context, l dlock.Locker, err error) {
	var took time.Duration
	if err == nil {
		took, err = median(func() error {
			lease, err := l.Acquire(ctx, "shop doctor") // no SKU has a blank
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		})
	}
	r.need("lock", "acquired and released in "+text(took), err, Fail, "check the servers above, and the rights of the user: strategies on this store are refused")
}

func median(ask func() error) (time.Duration, error) {
	var took []time.Duration
	for range pings {
		began := time.Now()
		if err := ask(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func text(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000) }

// examineDatabase asks what [sqlstore.Open] and /readyz ask, and tries to write.
func examineDatabase(ctx context.Context, c Config, opened *closers) []Check {
	r := &report{"database", databaseHosts(ctx, c.Database)}
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: c.Database, Instance: "doctor", Access: sqlstore.AccessChange})
	if err != nil {
		_, change := missing(err)
		if errors.Is(err, fs.ErrNotExist) {
			change = "check --database; shop migrate --create makes a new one"
		}
		r.need("open", "", err, Fail, change)
		return r.checks
	}
	opened.pushClient("database", store.Close)
	r.note("address", store.Address())
	r.settings(store.Settings(ctx))
	version, err := store.SchemaVersion(ctx)
	if version == 0 && errors.Is(err, sqlstore.ErrNoSchema) {
		r.need("schema", "", err, Fail, "check --database; shop migrate --create makes a schema")
		return r.checks
	}
	r.need("schema", "version "+strconv.Itoa(version), err, Fail, "run shop migrate")
	err = store.TryWrite(ctx)
	_, change := missing(err)
	r.need("write", "an order could be stored", err, Fail, change)
	r.clock(func() (time.Time, error) { return store.Now(ctx) })
	r.latency(func() error { return store.Ping(ctx) })
	return r.checks
}

// settings judges the settings of a database.
func (r *report) settings(is map[string]string, err error) {
	if err != nil {
		r.need("settings", "", err, Warn, "let the user of --database read the settings")
		return
	}
	r.note("version", is["engine"]+" "+is["version"])
	role, change := "writer", "name the server that accepts writes, or end its read-only mode"
	if state := is["wsrep_local_state_comment"]; state != "" && is["engine"] == "galera" {
		role = "Galera node, " + state
	}
	demoted := is["read_only"] == "ON" || is["super_read_only"] == "ON"
	if demoted {
		role = "read-only"
	}
	hosts, writers := 0, 0
	for _, c := range r.checks {
		if c.Check == "host" {
			hosts++
		}
		if c.Check == "host" && c.Value == "writer" {
			writers++
		}
	}
	several := writers > 1 && is["engine"] != "galera"
	if several {
		role, change = fmt.Sprintf("%d hosts accept writes", writers), "make all hosts but one read-only: each would sell all units"
	}
	r.add("role", role, !demoted && !several, Warn, change)
	for _, s := range []struct{ name, want, change string }{
		{"binlog_format", "", ""},
		{"tx_isolation", "", ""},
		{"transaction_isolation", "", ""},
		{"innodb_flush_log_at_trx_commit", "1", "set it to 1: a machine that loses power loses orders of the last second"},
		{"sync_binlog", "", ""},
		{"fsync", "on", "set it to on: a machine that loses power loses the database"},
		{"synchronous_commit", "on remote_apply remote_write", "set it to on: a machine that loses power, or a failover, loses orders"},
		{"journal_mode", "wal", "let an instance start once: it sets the mode"},
		{"synchronous", "2", "open the file by shop"},
	} {
		if value, ok := is[s.name]; ok {
			r.add(s.name, value, s.want == "" || slices.Contains(strings.Fields(s.want), value), Warn, s.change)
		}
	}
	if names, ok := is["synchronous_standby_names"]; ok {
		r.add("synchronous_standby_names", cmp.Or(names, "none"), names != "" || hosts < 2, Warn, "name the standbys in it: a failover loses orders that no standby has")
	}
	if limit, err := strconv.Atoi(is["max_connections"]); err == nil {
		used, _ := strconv.Atoi(is["Threads_connected"]) // no figure counts as none
		r.add("max_connections", fmt.Sprintf("%d, %d in use", limit, used), limit-used >= sqlstore.ServerConnections, Warn,
			fmt.Sprintf("raise it: an instance opens up to %d", sqlstore.ServerConnections))
	}
}
