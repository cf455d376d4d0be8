package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"example.com/shop/bench/throughput"
)

// strategy is the one that all runs sell by: orders share transactions, and no lock service is asked.
const strategy = "conditional"

// Load is what a run is asked for.
type Load struct {
	Instances   int    `json:"instances"`
	Connections int    `json:"connections"`
	SKUs        int    `json:"skus"`
	Store       string `json:"store,omitempty"` // default mariadb
}

// Run is a turn on fresh servers.
type Run struct {
	Load
	Round           int                `json:"round"`
	OrdersPerSecond float64            `json:"orders_per_second"`
	P50             float64            `json:"p50_ms"`
	Transactions    float64            `json:"transactions_per_order"`
	Statements      float64            `json:"statements_per_order"`
	CPU             map[string]float64 `json:"cpu_ms_per_order"`
	Others          float64            `json:"processors_of_others"` // that programs used which are no part of the run
}

// Measured is all runs.
type Measured struct {
	Machine throughput.Machine `json:"machine"`
	Seconds float64            `json:"seconds"`
	Flushes []float64          `json:"flush_ms"` // of a disk, the median of each round
	Runs    []Run              `json:"runs"`
}

var (
	// lonely has no order that shares its transaction. Such an order takes a path of its own, without other goroutines.
	lonely = Load{1, 1, 1, ""}

	// fitted are the loads that the parameters come from: one instance, one SKU.
	fitted = []Load{{1, 4, 1, ""}, {1, 16, 1, ""}, {1, 64, 1, ""}, {1, 256, 1, ""}}

	// manyRows has a row for each order of a transaction. The costs of a row come from it.
	manyRows = Load{1, 64, 96, ""}

	// predicted are the loads that the model has to reproduce.
	predicted = []Load{
		{1, 32, 1, ""},
		{1, 128, 1, ""},
		{1, 96, 96, ""},
		{2, 32, 1, ""},
		{2, 96, 1, ""},
		{2, 96, 96, ""},
		{3, 24, 12, ""},
		{3, 48, 1, ""},
		{3, 96, 1, ""},
		{3, 96, 96, ""},
	}

	// alongside has no part in the model.
	alongside = []Load{{1, 1, 1, "sqlite"}, {1, 64, 1, "sqlite"}}
)

// measure adds a round of all loads to the study in docs.
func measure(ctx context.Context, docs, executable string, seconds float64) error {
	all, err := read(docs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	round := 1
	for _, r := range all.Runs {
		round = max(round, r.Round+1)
	}
	all.Seconds = seconds
	flush, err := flushed()
	if err != nil {
		return err
	}
	all.Flushes = append(all.Flushes, flush)
	for _, l := range slices.Concat([]Load{lonely}, fitted, []Load{manyRows}, predicted, alongside) {
		r, machine, err := once(ctx, l, executable, seconds)
		if err != nil {
			return fmt.Errorf("%+v: %w", l, err)
		}
		r.Round = round
		all.Runs = append(all.Runs, r)
		if l.Store == "" {
			all.Machine = machine
		}
		fmt.Fprintf(os.Stderr, "round %d %+v: %.0f orders/s, %.2f processors of others\n", round, l, r.OrdersPerSecond, r.Others)
	}
	return all.save(docs)
}

// flushed returns how many milliseconds the folder of this program takes to flush a page, the median of many.
func flushed() (float64, error) {
	f, err := os.CreateTemp(".", "flush-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []float64
	for range 200 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began).Seconds()*1000)
	}
	return throughput.Median(took), nil
}

// once is a run of a load.
func once(ctx context.Context, l Load, executable string, seconds float64) (Run, throughput.Machine, error) {
	r, err := throughput.Throughput(ctx, throughput.Config{
		Strategies: []string{strategy}, Stores: []string{cmp.Or(l.Store, "mariadb"), "redis"}, Executable: executable,
		Instances: l.Instances, Connections: l.Connections, SKUs: l.SKUs,
		Rounds: 1, WarmUp: time.Second, Duration: time.Duration(seconds * float64(time.Second)), NoLimits: true,
	})
	if err == nil && !r.OK() {
		err = fmt.Errorf("the audit is not exact, or a request failed: %+v", r.Variants)
	}
	if err != nil {
		return Run{}, r.Machine, err
	}
	v := r.Variants[0]
	return Run{
		Load: l, OrdersPerSecond: v.OrdersPerSecond, P50: v.P50, Transactions: v.Commits, Statements: v.SQL, CPU: v.CPU, Others: v.Others,
	}, r.Machine, nil
}
