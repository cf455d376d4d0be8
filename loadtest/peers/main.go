// Command peers measures this project's locks on Redis beside those of other Go
// libraries: in one run, on one server, under the same conditions.
//
//	go run . -markdown FILE    about three minutes; prints tables and writes them to FILE
//	go run . -quick            one short round, to see that all of it works
//	go run . -only 'contended/ours' -cpuprofile cpu.out
//
// What is measured is a cell: one workload on one subject. A round runs every
// cell for a moment, so that noise of the machine hits all subjects alike; the
// tables have medians over the rounds. Subjects take turns at being first.
//
// Every run checks what a lock is for: no more callers inside than there are
// permits, and no lost update of a counter. A violation fails the program.
//
// SHOP_REDIS is a redis:// address of a server that nobody else uses; without it
// the program starts a redis-server of its own.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"time"

	"example.com/shop/internal/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	cell       time.Duration
	rounds     int
	quick      bool
	markdown   string
	cpuprofile string
	only       *regexp.Regexp
	redis      string
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (settings, error) {
	var s settings
	var only string
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&s.cell, "cell", 4*time.Second, "time per cell, over all rounds; a contended one takes twice as long")
	flags.IntVar(&s.rounds, "rounds", 5, "number of rounds")
	flags.BoolVar(&s.quick, "quick", false, "one short round; writes no file")
	flags.StringVar(&s.markdown, "markdown", "", "file to write the tables to")
	flags.StringVar(&s.cpuprofile, "cpuprofile", "", "file to write a CPU profile of this process to")
	flags.StringVar(&only, "only", "", "regular expression for WORKLOAD/SUBJECT; writes no tables to files")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.quick {
		s.rounds, s.cell = 1, 150*time.Millisecond
	}
	if s.rounds < 1 || s.cell <= 0 {
		return s, errors.New("-rounds and -cell must be positive")
	}
	if s.quick || only != "" {
		s.markdown = ""
	}
	var err error
	s.only, err = regexp.Compile(only)
	s.redis = getenv("SHOP_REDIS")
	return s, err
}

// run measures and reports. It fails when a lock did, too.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	address := s.redis
	if address == "" {
		server, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
		if err != nil {
			return err
		}
		defer server.Close()
		address = server.URL()
	}
	target, err := openTarget(address)
	if err != nil {
		return err
	}
	defer target.close()
	where, err := target.describe(ctx)
	if err != nil {
		return err
	}
	if s.cpuprofile != "" {
		stop, err := profile(s.cpuprofile)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, stop()) }()
	}
	found, err := measure(ctx, target, s, stderr)
	if err != nil {
		return err
	}
	where.loadAfter = loadAverage()
	r := report{where: where, settings: s, found: found}
	if err := r.text(stdout); err != nil || s.markdown == "" {
		return err
	}
	file, err := os.Create(s.markdown)
	if err != nil {
		return err
	}
	return errors.Join(r.markdown(file), file.Close())
}

// profile starts a CPU profile of this process, which is all of the clients.
func profile(path string) (stop func() error, err error) {
	file, err := os.Create(path) //nolint:gosec // A path from the command line.
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error { pprof.StopCPUProfile(); return file.Close() }, nil
}
