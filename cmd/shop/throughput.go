package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/throughput"
)

// throughputCommand measures how many orders each strategy takes.
func throughputCommand() cli.Command {
	return cli.Command{
		Name: "throughput", Summary: "Measure the orders per second of each strategy",
		Details: "The command starts the real servers of --stores, which must be installed, and gives each strategy --rounds turns. Each turn takes --warmup and --duration.",
		Examples: []cli.Example{
			{Purpose: "Two strategies, 3 rounds of 7 s each", Line: "shop lab throughput --strategies conditional,redis-cohort"},
			{Purpose: "Every lock, with the report in a folder", Line: "shop lab throughput --stores mariadb,redis,redlock,zookeeper,etcd --out results"},
			{Purpose: "A catalogue of 96 SKUs, for a program", Line: "shop lab throughput --skus 96 --json"},
		},
		Exits: []cli.Exit{{Code: 0, Meaning: "measured"}, {Code: 1, Meaning: "a strategy that must be exact was not, or a server is missing"}},
		Define: func(f *cli.Flags) cli.Run {
			t := &measurement{f: f, config: throughput.Config{Stores: []string{"mariadb", "redis"}}}
			t.define()
			return t.run
		},
	}
}

// measurement is the command with its flags.
type measurement struct {
	f      *cli.Flags
	config throughput.Config
	out    string // folder for the report; empty: none
	json   bool
}

// define defines the flags.
func (t *measurement) define() {
	f, c := t.f, &t.config
	strategiesVar(f, &c.Strategies)
	f.ListVar(&c.Stores, "stores", []string{"mariadb", "sqlite", "redis", "redlock", "zookeeper", "etcd"}, "`NAMES`: start these servers; redis and one database are required")
	f.Group("Load")
	f.IntVar(&c.Instances, "instances", 3, "`PROCESSES`: start this many instances, 1 to 32")
	f.IntVar(&c.Connections, "connections", 96, "`CONNECTIONS`: send orders over this many connections, over all instances; at most 10000")
	f.IntVar(&c.SKUs, "skus", 1, "`SKUS`: sell this many SKUs at the same time, 1 to 1000000")
	f.IntVar(&c.Catalog, "catalog", 0, "`SKUS`: put this many further SKUs on sale that nobody orders")
	f.IntVar(&c.Open, "open", 0, "`ORDERS`: place this many orders that stay open before the first turn, by the last of --strategies")
	f.BoolVar(&c.Keys, "keys", false, "send an Idempotency-Key with each order")
	f.IntVar(&c.Rate, "rate", 0, "`ORDERS`: send this many orders per second by the clock; 0 sends the next order of a connection after its response")
	f.Group("Turns")
	f.IntVar(&c.Rounds, "rounds", 3, "`TURNS`: give each strategy this many turns, 1 to 100")
	f.DurationVar(&c.Duration, "duration", 5*time.Second, "measure for this time in each turn, 100ms to 10m")
	f.DurationVar(&c.WarmUp, "warmup", 2*time.Second, "send orders for this time before each turn, at most 1m")
	f.Group("Output")
	f.StringVar(&t.out, "out", "", "`FOLDER`: write throughput.md, throughput.json and throughput.svg to this folder")
	f.BoolVar(&t.json, "json", false, "print nothing but the result as JSON")
}

func (t *measurement) run(ctx context.Context, _ []string) (err error) {
	c := t.config
	for _, zero := range []struct {
		name  string
		value int
	}{{"instances", c.Instances}, {"connections", c.Connections}, {"skus", c.SKUs}, {"rounds", c.Rounds}} {
		if zero.value == 0 {
			return cli.UsageError{Err: fmt.Errorf("--%s 0: want 1 or more", zero.name)}
		}
	}
	if c.Duration == 0 {
		return cli.UsageError{Err: errors.New("--duration 0s: want 100ms to 10m")}
	}
	if !t.json {
		c.Log = t.f.Stderr
	}
	if err := c.Validate(); err != nil {
		return cli.UsageError{Err: err}
	}
	if t.out != "" {
		if err := os.MkdirAll(t.out, 0o755); err != nil { //nolint:gosec // What is written there is for everybody to read.
			return cli.UsageError{Err: fmt.Errorf("--out: %w", err)} // now, and not after minutes
		}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	r, err := throughput.Throughput(ctx, c)
	if err != nil {
		return err
	}
	if err := publish(r, t.out, t.json, t.f.Stdout); err != nil {
		return err
	}
	if !r.OK() {
		return cli.ExitError(1)
	}
	return nil
}

// publish writes the report into a folder, if one is named, and prints it.
func publish(r throughput.Report, folder string, onlyJSON bool, stdout io.Writer) error {
	if folder != "" {
		if err := r.Write(folder); err != nil {
			return err
		}
	}
	if onlyJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err := fmt.Fprint(stdout, r.Markdown())
	return err
}
