package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/cli"
	"example.com/shop/internal/controlroom"
	"example.com/shop/internal/fleet"
	"example.com/shop/internal/throughput"
)

// experiment opens the control room, or runs a lab or a measurement.
func experiment(ctx context.Context, f *cli.Flags, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return controlRoom(ctx, f, args)
	}
	switch args[0] {
	case "list":
		return listLabs(ctx, f, args[1:])
	case "run":
		return runLabs(ctx, f, args[1:])
	case "worker":
		return serveLab(ctx, f, args[1:])
	case "throughput":
		return measureThroughput(ctx, f, args[1:])
	}
	return cli.UsageError{Err: fmt.Errorf("lab: there is no %q: shop lab opens the control room, shop lab list and shop lab run NAME show experiments, shop lab throughput measures how many orders each strategy takes", args[0])}
}

// measureThroughput measures how many orders each strategy takes.
func measureThroughput(ctx context.Context, f *cli.Flags, args []string) error {
	c := throughput.Config{Log: f.Stderr}
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
	if err := f.Parse(args); err != nil {
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
	r, err := throughput.Throughput(ctx, c)
	if err != nil {
		return err
	}
	if err := publish(r, out, onlyJSON, f.Stdout); err != nil {
		return err
	}
	if !r.OK() {
		return cli.ExitError(1)
	}
	return nil
}

// controlRoom runs instances and a page that shows them, until ctx ends.
func controlRoom(ctx context.Context, f *cli.Flags, args []string) error {
	c := controlroom.Config{Out: f.Stdout, Stores: fleet.StoresConfig{Embed: true}}
	f = cli.NewFlags(f.Process, "lab", "watch instances sell the same stock, break what you like, and see why it holds; until Ctrl-C.\nshop lab list and shop lab run NAME show experiments, shop lab throughput measures how many orders each strategy takes")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` of the page, on loopback")
	f.IntVar(&c.Instances, "instances", 3, "processes that sell")
	s := &c.Stores
	f.BoolVar(&s.All, "all", false, "start a real server of each kind that is installed and not named: MariaDB, Redis, five more for redlock, ZooKeeper, etcd")
	f.StringVar(&s.Redis, "redis", "", "redis://HOST:6379/0 (default: embedded)")
	f.StringVar(&s.Database, "database", "", "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB (default: a temporary SQLite file)")
	f.StringVar(&s.Redlock, "redlock", "", "redis://HOST:6379/0,... of three or more servers (default none)")
	f.StringVar(&s.ZooKeeper, "zookeeper", "", "HOST:2181,... (default none)")
	f.StringVar(&s.Etcd, "etcd", "", "HOST:2379,... (default none)")
	if err := f.Parse(args); err != nil {
		return err
	}
	err := errors.Join(app.ValidRedis(s.Redis), app.ValidRedlock(s.Redlock), app.ValidServers("zookeeper", s.ZooKeeper), app.ValidServers("etcd", s.Etcd), c.Validate())
	if s.Database != "" {
		err = errors.Join(err, app.ValidDatabase(s.Database))
	}
	if err != nil {
		return cli.UsageError{Err: errors.New("lab: " + strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	return controlroom.Run(ctx, c)
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
