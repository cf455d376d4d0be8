package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/lab"
)

// experiment runs a measurement of the lab.
func experiment(ctx context.Context, f *cli.Flags, args []string) error {
	if len(args) == 0 || args[0] != "throughput" {
		return cli.UsageError{Err: errors.New("lab: want throughput: how many orders per second each strategy takes; shop lab throughput --help lists its flags")}
	}
	c := lab.Config{Log: f.Stderr}
	var strategies, stores, out string
	var onlyJSON bool
	f = cli.NewFlags(f.Process, "lab throughput", "measure how many orders each strategy takes, on real servers; exit 1 if one that must be exact was not")
	f.StringVar(&strategies, "strategies", "", "comma-separated `NAMES` of the strategies to sell by (default all whose stores there are)")
	f.StringVar(&stores, "stores", "mariadb,redis", "comma-separated servers to start: mariadb or sqlite, redis, and of redlock, zookeeper, etcd")
	f.IntVar(&c.Instances, "instances", 3, "processes that sell")
	f.IntVar(&c.Connections, "connections", 96, "of buyers, over all instances")
	f.IntVar(&c.SKUs, "skus", 1, "SKUs that are sold at the same time")
	f.IntVar(&c.Catalog, "catalog", 0, "SKUs on sale without buyers")
	f.IntVar(&c.Open, "open", 0, "orders that are open before the first turn, placed by the last of --strategies")
	f.BoolVar(&c.Keys, "keys", false, "send an Idempotency-Key with each order")
	f.IntVar(&c.Rounds, "rounds", 3, "turns of each strategy")
	f.DurationVar(&c.Duration, "duration", 5*time.Second, "of a turn")
	f.DurationVar(&c.WarmUp, "warmup", 2*time.Second, "before each turn")
	f.IntVar(&c.Rate, "rate", 0, "orders per second that arrive by the clock (default: each connection asks again when it has its answer)")
	f.StringVar(&out, "out", "", "`FOLDER` to write throughput.md, .json and .svg to")
	f.BoolVar(&onlyJSON, "json", false, "print nothing but the result as JSON")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	for _, zero := range []struct {
		name  string
		value int
	}{{"instances", c.Instances}, {"connections", c.Connections}, {"skus", c.SKUs}, {"rounds", c.Rounds}, {"duration", int(c.Duration)}} {
		if zero.value == 0 {
			return cli.UsageError{Err: fmt.Errorf("lab: --%s 0: want more", zero.name)}
		}
	}
	if strategies != "" {
		c.Strategies = strings.Split(strategies, ",")
	}
	c.Stores = strings.Split(stores, ",")
	if onlyJSON {
		c.Log = nil
	}
	if err := c.Validate(); err != nil {
		return cli.UsageError{Err: errors.New("lab: " + strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	var err error
	if out != "" {
		if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // What is written there is for everybody to read.
			return cli.UsageError{Err: fmt.Errorf("lab: --out: %w", err)} // now, and not after minutes
		}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	r, err := lab.Throughput(ctx, c)
	if err != nil {
		return err
	}
	if out != "" {
		if err := r.Write(out); err != nil {
			return err
		}
	}
	if onlyJSON {
		err = json.NewEncoder(f.Stdout).Encode(r)
	} else {
		_, err = fmt.Fprint(f.Stdout, r.Markdown())
	}
	if err == nil && !r.OK() {
		return cli.ExitError(1)
	}
	return err
}
