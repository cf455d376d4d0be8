// Command timers measures this project's delay queue alongside asynq, in one run and on one server. It also measures
// the noise floor of the machine.
//
//	go run ./timers -markdown FILE    less than four minutes; prints tables and writes them to FILE
//	go run ./timers -quick            one short round, to see that all of it works
//	go run ./timers -only 'late/ours, rows in memory, 20000' -cpuprofile cpu.out
//
// A round runs every cell for a moment; the tables have medians over the rounds. The long part, a million timers, runs
// once.
//
// Every run of ours checks what a timer is for: all of them fire, none of them early. A violation fails the program.
// The tables have the figures of asynq.
//
// SHOP_REDIS is a redis:// address of a server that nobody else uses: each cell
// empties it. Without it the program starts a redis-server of its own. MariaDB is
// always the program's own.
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"example.com/shop/bench/measure"
)

func main() { measure.Main("timers", run) }

// run measures and reports. It fails when a timer of ours was lost or early, too.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	defaults := measure.Settings{Program: "timers", Cell: 5 * time.Second, Rounds: 3}
	s, err := defaults.Parse(args, 600*time.Millisecond, getenv, stderr)
	if err != nil {
		return err
	}
	servers, err := start(ctx, s.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.close()) }()
	where := measure.Describe("github.com/redis/go-redis/v9", "github.com/hibiken/asynq", "github.com/go-sql-driver/mysql")
	versions, err := servers.versions(ctx)
	if err != nil {
		return err
	}
	stop, err := s.Profile()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, stop()) }()
	found, err := measure.Measure(ctx, plan(servers, s.Quick), s, stderr)
	if err != nil {
		return err
	}
	r := report{s.Quick, found}
	return measure.Report{
		Where: where, Servers: "Redis " + versions["Redis"] + ", MariaDB " + versions["MariaDB"],
		LoadAfter: measure.LoadAverage(), Settings: s, Tables: r.tables(),
	}.Write(stdout, page, map[string]any{
		"Redis": versions["Redis"], "MariaDB": versions["MariaDB"], "Busy": busy(where.LoadBefore),
		"Soonest": soonest, "Latest": latest, "Callers": callers, "Batch": expireMany,
	})
}
