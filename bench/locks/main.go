// Command locks measures this project's locks alongside those of other Go libraries: in
// one run, on the same servers, under the same conditions. Where there is no peer, as on
// SQL, it measures what the server does without a lock.
//
//	go run ./locks -markdown FILE    less than six minutes; prints tables and writes them to FILE
//	go run ./locks -quick            one short round, to see that all of it works
//	go run ./locks -only '^contended/ours' -cpuprofile cpu.out
//	go run ./locks -only '^etcd|^ZooKeeper|^five|^MariaDB|^SQLite'
//
// The unit of measurement is a cell: one workload on one subject. A round runs every cell for a moment, so that noise
// of the machine hits all subjects alike; the tables have medians over the rounds. Subjects take turns at being first.
//
// Every run checks what a lock is for: no more callers inside than there are
// permits, and no lost update of a counter. A violation fails the program.
//
// The program starts the servers that it needs. SHOP_REDIS is a redis:// address of a
// server that nobody else uses, for the locks on one Redis.
package main

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"example.com/shop/bench/measure"
)

func main() { measure.Main("locks", run) }

// run measures and reports. It fails when a lock did, too.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	defaults := measure.Settings{Program: "locks", Cell: 2 * time.Second, Rounds: 5}
	s, err := defaults.Parse(args, 150*time.Millisecond, getenv, stderr)
	if err != nil {
		return err
	}
	on, err := start(ctx, s.Redis)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, on.close()) }()
	where := measure.Describe("github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
		"go.etcd.io/etcd/client/v3", "github.com/go-zookeeper/zk", "github.com/go-sql-driver/mysql", "github.com/glebarez/go-sqlite")
	stop, err := s.Profile()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, stop()) }()
	found, err := measure.Measure(ctx, plan(on), s, stderr)
	if err != nil {
		return err
	}
	r := report{found}
	return measure.Report{
		Where: where, Servers: strings.Join(on.versions, "; "), LoadAfter: measure.LoadAverage(),
		Settings: s, Tables: r.tables(),
	}.Write(stdout, page, values)
}
