// Command scale measures the shop on one machine, fits a model to a part of the runs, and has the model predict the
// others. If it predicts them, it simulates the shop on many machines. It writes the page and the chart of that.
//
//	cd bench && go run ./scale -rounds 5 && go run ./scale
//
// Each round adds a run of every load to docs/benchmarks/results/scale.json. Without rounds, the command fits, simulates and writes. The model is a simulation of discrete events with a seed, so the same runs have the same results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"example.com/shop/bench/throughput"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	docs := f.String("docs", "../docs", "folder of the documentation")
	rounds := f.Int("rounds", 0, "rounds of measured runs that are added; each takes three minutes; without, the model is fitted and the page written")
	seconds := f.Float64("seconds", 3, "that a run counts")
	memory := f.String("memory", "/dev/shm", "folder in memory for the files of the servers")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *rounds > 0 {
		// A disk that other programs use as well would make each run another one. Its flush is measured alone.
		if err := os.Setenv("TMPDIR", *memory); err != nil {
			return err
		}
		return measureAll(ctx, *docs, *rounds, *seconds)
	}
	s, err := read(*docs)
	if err != nil {
		return err
	}
	s.think(0.5)
	if err := s.save(*docs); err != nil {
		return err
	}
	return s.write(*docs)
}

// measureAll measures rounds of the shop of this checkout.
func measureAll(ctx context.Context, docs string, rounds int, seconds float64) error {
	dir, err := os.MkdirTemp("", "shop-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shop := filepath.Join(dir, "shop")
	if err := throughput.Build(ctx, shop); err != nil {
		return err
	}
	for range rounds {
		if err := measure(ctx, docs, shop, seconds); err != nil {
			return err
		}
	}
	return nil
}
