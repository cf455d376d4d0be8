package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/lab"
)

// goal is a ratio that is to be reached, and what was.
type goal struct {
	name   string
	target float64
	most   bool // the target is not to be exceeded
	pairs  []float64
}

// got is the median.
func (g goal) got() float64 {
	sorted := slices.Sorted(slices.Values(g.pairs))
	return sorted[len(sorted)/2]
}

func (g goal) reached() string {
	if g.got() >= g.target != g.most || g.got() == g.target {
		return "yes"
	}
	return "no"
}

func (g goal) wanted() string {
	if g.most {
		return fmt.Sprintf("at most %g", g.target)
	}
	return fmt.Sprintf("at least %g", g.target)
}

const hot = "redis-cohort"

func armOf(r lab.Report, name string) lab.Arm {
	i := slices.IndexFunc(r.Arms, func(a lab.Arm) bool { return a.Strategy == name })
	if i < 0 {
		return lab.Arm{}
	}
	return r.Arms[i]
}

// best returns the arm from that report in which it sold most.
func best(reports []lab.Report, name string) (most lab.Arm) {
	for _, r := range reports {
		if a := armOf(r, name); a.OrdersPerSecond >= most.OrdersPerSecond {
			most = a
		}
	}
	return most
}

// rounds returns the ratios of a figure, round by round.
func rounds(of, to lab.Arm, figure func(lab.Round) float64) (ratios []float64) {
	for i, r := range of.Rounds {
		if i < len(to.Rounds) {
			ratios = append(ratios, figure(r)/figure(to.Rounds[i]))
		}
	}
	return ratios
}

func rate(r lab.Round) float64 { return r.OrdersPerSecond }

// reach measures all goals. The first come from the runs of all arms; the others from
// pairs of runs that differ in one thing, one after the other.
func reach(ctx context.Context, c lab.Config, reports []lab.Report) ([]goal, error) {
	var goals []goal
	for _, to := range []struct {
		name, what string
		target     float64
	}{
		{"naive", "naive, which oversells", 8},
		{"conditional", "conditional UPDATE", 5},
		{"redsync", "one redsync lock per order", 60},
	} {
		for _, r := range reports {
			if armOf(r, to.name).Rounds == nil {
				continue
			}
			goals = append(goals, goal{
				fmt.Sprintf("orders/s, %s / %s, %d buyers", hot, to.what, r.Load.Connections),
				to.target, false, rounds(armOf(r, hot), armOf(r, to.name), rate),
			})
		}
		if len(reports) > 1 {
			goals = append(goals, goal{
				fmt.Sprintf("orders/s, %s / %s, each with as many buyers as suit it best", hot, to.what),
				to.target, false, rounds(best(reports, hot), best(reports, to.name), rate),
			})
		}
	}
	c.Peers = nil
	open := c
	open.Strategies, open.Rate = []string{"naive", hot}, int(best(reports, "naive").OrdersPerSecond)
	r, err := lab.Throughput(ctx, open)
	if err != nil {
		return nil, err
	}
	goals = append(goals, goal{
		fmt.Sprintf("p99, %s / naive, at %d orders/s that arrive by the clock", hot, open.Rate), 0.5, true,
		rounds(armOf(r, hot), armOf(r, "naive"), func(r lab.Round) float64 { return r.P99 }),
	})
	cost := func(a lab.Arm) (sum float64) {
		for kind, used := range a.CPU {
			if kind != "load" {
				sum += used
			}
		}
		return sum
	}
	for _, pair := range []struct {
		name       string
		target     float64
		most       bool
		rounds     int
		of, to     func(*lab.Config)
		comparison func(of, to lab.Arm) float64
		traced     bool // of is
	}{
		{
			"orders/s with a key per order, permits for all, a limit per customer and traces of 1% / without them", 0.8, false, c.Rounds,
			func(c *lab.Config) { c.Keys, c.Args = true, []string{"--customer-rate", "1000"} },
			func(c *lab.Config) { c.Args = []string{"--permits", "0"} },
			func(of, to lab.Arm) float64 { return of.OrdersPerSecond / to.OrdersPerSecond },
			true,
		},
		{
			"orders/s, three instances / one, 96 SKUs, each sold by one instance", 1, false, c.Rounds,
			func(c *lab.Config) { c.Instances, c.SKUs, c.Own = 3, 96, true },
			func(c *lab.Config) { c.Instances, c.SKUs, c.Own = 1, 96, true },
			func(of, to lab.Arm) float64 { return of.OrdersPerSecond / to.OrdersPerSecond },
			false,
		},
		{
			"orders/s, three instances / one, 96 SKUs, each sold by all", 1, false, c.Rounds,
			func(c *lab.Config) { c.Instances, c.SKUs = 3, 96 },
			func(c *lab.Config) { c.Instances, c.SKUs = 1, 96 },
			func(of, to lab.Arm) float64 { return of.OrdersPerSecond / to.OrdersPerSecond },
			false,
		},
		{
			"processor time of an order, beside 1,000,000 open orders / beside one", 1.2, true, 1,
			func(c *lab.Config) { c.Open = 1_000_000 },
			func(c *lab.Config) { c.Open = 1 },
			func(of, to lab.Arm) float64 { return cost(of) / cost(to) },
			false,
		},
		{
			"processor time of an order, beside 100,000 SKUs / beside 10", 1.2, true, 1,
			func(c *lab.Config) { c.Catalog = 100_000 },
			func(c *lab.Config) { c.Catalog = 10 },
			func(of, to lab.Arm) float64 { return cost(of) / cost(to) },
			false,
		},
	} {
		g := goal{name: pair.name, target: pair.target, most: pair.most}
		for range pair.rounds {
			var arms [2]lab.Arm
			for i, set := range []func(*lab.Config){pair.of, pair.to} {
				one := c
				one.Strategies, one.Rounds = []string{hot}, 1
				set(&one)
				run := lab.Throughput
				if pair.traced && i == 0 {
					run = traced
				}
				r, err := run(ctx, one)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", pair.name, err)
				}
				arms[i] = r.Arms[0]
			}
			g.pairs = append(g.pairs, pair.comparison(arms[0], arms[1]))
		}
		goals = append(goals, g)
	}
	return goals, nil
}

// traced is [lab.Throughput] of instances that send the traces of one order in a hundred, and
// their metrics, to a receiver that throws them away.
func traced(ctx context.Context, c lab.Config) (r lab.Report, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	var spans atomic.Int64
	receiver := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); r.URL.Path == "/v1/traces" {
			spans.Add(n)
		}
	})}
	go receiver.Serve(l) //nolint:errcheck // it ends when it is closed
	defer func() { err = errors.Join(err, receiver.Close()) }()
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String(),
		"OTEL_TRACES_SAMPLER":         "parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG":     "0.01",
	} {
		if err := os.Setenv(name, value); err != nil { // the instances inherit it
			return r, err
		}
		defer os.Unsetenv(name)
	}
	if r, err = lab.Throughput(ctx, c); err == nil && spans.Load() == 0 {
		err = errors.New("no traces arrived")
	}
	return r, err
}

// table writes the goals into a folder as a page.
func table(goals []goal, where lab.Machine, folder string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ratios\n\n%d CPUs, %s/%s, %s, commit %s, %s, load generator included; each is the median of the pairs in brackets.\n\n",
		where.CPUs, where.OS, where.Arch, where.Go, cmp.Or(where.Commit, "unknown"), where.Time)
	fmt.Fprintln(&b, "| ratio | wanted | measured | reached |\n|---|---|---|---|")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, g := range goals {
		var pairs []string
		for _, p := range g.pairs {
			pairs = append(pairs, fmt.Sprintf("%.2f", p))
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f (%s) | %s |\n", g.name, g.wanted(), g.got(), strings.Join(pairs, ", "), g.reached())
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\n", g.name, g.wanted(), g.got(), g.reached())
	}
	if err := w.Flush(); err != nil || folder == "" {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "ratios.md"), []byte(b.String()), 0o644) //nolint:gosec // to be read
}
