// Command orders writes the report of package throughput with two more variants. In these, each order takes one lock of
// redsync, or of bsm/redislock, as their READMEs show it.
//
//	cd bench && go run ./orders -out ../docs/benchmarks/results
//
// It builds the service first, and needs the servers that the tests need. The lock encloses the transaction of naive,
// so only the lock differs. A second report, in the folder crowd, has four times as many buyers. A third report, in
// the folder catalogue, has 96 SKUs.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/shop/bench/throughput"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if args := os.Args[1:]; len(args) > 0 && args[0] == "serve" {
		err = serve(ctx, args[1:])
	} else {
		err = measure(ctx, args, os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, args []string, stdout io.Writer) error {
	c := throughput.Config{Log: os.Stderr}
	f := flag.NewFlagSet("orders", flag.ContinueOnError)
	all := f.Bool("reach", false, "measure the other ratios as well: by the clock, with keys, by instances, by open orders, by SKUs; takes twenty minutes more")
	only := f.String("only", "", "regular expression for the ratios of pairs of runs, see reach.go; measures these alone, and writes no file")
	strategies := f.String("strategies", "naive,conditional,for-update,optimistic,redis,redis-cohort,lua", "of the service, comma-separated")
	stores := f.String("stores", "mariadb,redis", "servers to start, of mariadb, postgresql or sqlite, redis, redlock, zookeeper and etcd")
	out := f.String("out", "", "folder for throughput.md, .json and .svg")
	onlyJSON := f.Bool("json", false, "print nothing but the result as JSON")
	before := f.String("before", "", "shop of an earlier commit; measures this one alongside it; with -reach, after the other ratios")
	loadVars(f, &c)
	crowd := f.Int("crowd", 384, "connections of a second run; 0: neither that nor a third one, of a catalogue")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *onlyJSON {
		c.Log = nil
	}
	c.Strategies, c.Stores = strings.Split(*strategies, ","), strings.Split(*stores, ",")
	if err := c.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "shop-throughput-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.Executable = filepath.Join(dir, "shop")
	if *before != "" {
		if comparisons = append(comparisons, earlier(*before)...); !*all {
			*only = cmp.Or(*only, "earlier")
		}
	}
	if err := throughput.Build(ctx, c.Executable); err != nil {
		return err
	}
	if c.Peers, err = peers(); err != nil {
		return err
	}
	if *only != "" {
		wanted, err := regexp.Compile(*only)
		if err != nil {
			return err
		}
		goals, err := pairs(ctx, c, wanted)
		return errors.Join(err, table(stdout, goals, err, throughput.Machine{}, ""))
	}
	reports, err := runs(ctx, c, *crowd, *out)
	if err != nil {
		return err
	}
	if *all {
		goals, err := reach(ctx, c, reports)
		if err := errors.Join(err, table(stdout, goals, err, reports[0].Machine, *out)); err != nil {
			return err
		}
	}
	if *onlyJSON {
		return errors.Join(json.NewEncoder(stdout).Encode(reports), exact(reports))
	}
	for _, r := range reports {
		fmt.Fprint(stdout, r.Markdown())
	}
	return exact(reports)
}

// exact is an error if a strategy that must be exact was not, or a request failed.
func exact(reports []throughput.Report) error {
	for _, r := range reports {
		if !r.OK() {
			return fmt.Errorf("%d connections, %d SKUs: a strategy that must be exact was not, or a request failed", r.Load.Connections, r.Load.SKUs)
		}
	}
	return nil
}

// loadVars defines the flags of the load.
func loadVars(f *flag.FlagSet, c *throughput.Config) {
	f.IntVar(&c.Instances, "instances", 3, "processes that sell, of each library as well")
	f.IntVar(&c.Connections, "connections", 96, "of buyers, over all instances")
	f.IntVar(&c.SKUs, "skus", 1, "sold at the same time")
	f.IntVar(&c.Catalog, "catalog", 0, "SKUs on sale without orders")
	f.IntVar(&c.Open, "open", 0, "orders that stay open, placed before the first turn")
	f.BoolVar(&c.Keys, "keys", false, "send an Idempotency-Key with each order")
	f.IntVar(&c.Rounds, "rounds", 3, "turns of each variant")
	f.IntVar(&c.Rate, "rate", 0, "orders per second that arrive by the clock (default: a closed loop)")
	f.DurationVar(&c.Duration, "duration", 5*time.Second, "of a turn")
	f.DurationVar(&c.WarmUp, "warmup", 2*time.Second, "before each turn")
}

// peers are the variants that sell under the locks of libraries: this program is their instance.
func peers() (all []throughput.Peer, err error) {
	own, err := os.Executable()
	for _, l := range libraries {
		all = append(all, throughput.Peer{Name: l.name, Executable: own, Args: []string{"--library", l.name}, Strategy: strategy})
	}
	return all, err
}

// runs measures all variants, and all of them again with a crowd unless that is 0. A third run sells a catalogue of 96 SKUs, without
// those that take one lock per order. Each report after the first goes to a folder of its own.
func runs(ctx context.Context, c throughput.Config, crowd int, out string) (reports []throughput.Report, err error) {
	folders, configs := []string{out}, []throughput.Config{c}
	if crowd > 0 {
		many, catalogue := c, c
		many.Connections = crowd
		catalogue.SKUs, catalogue.Peers = 96, nil
		folders = append(folders, filepath.Join(out, "crowd"), filepath.Join(out, "catalogue"))
		configs = append(configs, many, catalogue)
	}
	for i, c := range configs {
		r, err := throughput.Throughput(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%d connections, %d SKUs: %w", c.Connections, c.SKUs, err)
		}
		if reports = append(reports, r); out == "" {
			continue
		}
		if err := r.Write(folders[i]); err != nil {
			return nil, err
		}
	}
	return reports, nil
}
