package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

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

// reach measures all goals. The first come from main, the run of all arms; the others from
// pairs of runs that differ in one thing, one after the other.
func reach(ctx context.Context, c lab.Config, main lab.Report) ([]goal, error) {
	arm := func(r lab.Report, name string) lab.Arm {
		i := slices.IndexFunc(r.Arms, func(a lab.Arm) bool { return a.Strategy == name })
		if i < 0 {
			return lab.Arm{}
		}
		return r.Arms[i]
	}
	each := func(of, to lab.Arm, figure func(lab.Round) float64) (ratios []float64) {
		for i, r := range of.Rounds {
			if i < len(to.Rounds) {
				ratios = append(ratios, figure(r)/figure(to.Rounds[i]))
			}
		}
		return ratios
	}
	rate := func(r lab.Round) float64 { return r.OrdersPerSecond }
	cohort, naive := arm(main, hot), arm(main, "naive")
	goals := []goal{
		{"orders/s, " + hot + " / naive, which oversells", 8, false, each(cohort, naive, rate)},
		{"orders/s, " + hot + " / conditional UPDATE", 5, false, each(cohort, arm(main, "conditional"), rate)},
		{"orders/s, " + hot + " / one redsync lock per order", 60, false, each(cohort, arm(main, "redsync"), rate)},
	}
	c.Peers = nil
	open := c
	open.Strategies, open.Rate = []string{"naive", hot}, int(naive.OrdersPerSecond)
	r, err := lab.Throughput(ctx, open)
	if err != nil {
		return nil, err
	}
	goals = append(goals, goal{
		fmt.Sprintf("p99, %s / naive, at %d orders/s that arrive by the clock", hot, open.Rate), 0.5, true,
		each(arm(r, hot), arm(r, "naive"), func(r lab.Round) float64 { return r.P99 }),
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
	}{
		{
			"orders/s with a key per order, the usual permits and a limit per customer / without them", 0.8, false, c.Rounds,
			func(c *lab.Config) {
				c.Keys, c.Args = true, []string{"--permits", "64", "--customer-rate", "1000"}
			},
			func(c *lab.Config) { c.Args = []string{"--permits", "0"} },
			func(of, to lab.Arm) float64 { return of.OrdersPerSecond / to.OrdersPerSecond },
		},
		{
			"orders/s, three instances / one, 96 SKUs", 1, false, c.Rounds,
			func(c *lab.Config) { c.Instances, c.SKUs = 3, 96 },
			func(c *lab.Config) { c.Instances, c.SKUs = 1, 96 },
			func(of, to lab.Arm) float64 { return of.OrdersPerSecond / to.OrdersPerSecond },
		},
		{
			"processor time of an order, beside 1,000,000 open orders / beside one", 1.2, true, 1,
			func(c *lab.Config) { c.Open = 1_000_000 },
			func(c *lab.Config) { c.Open = 1 },
			func(of, to lab.Arm) float64 { return cost(of) / cost(to) },
		},
		{
			"processor time of an order, beside 100,000 SKUs / beside 10", 1.2, true, 1,
			func(c *lab.Config) { c.Catalog = 100_000 },
			func(c *lab.Config) { c.Catalog = 10 },
			func(of, to lab.Arm) float64 { return cost(of) / cost(to) },
		},
	} {
		g := goal{name: pair.name, target: pair.target, most: pair.most}
		for range pair.rounds {
			var arms [2]lab.Arm
			for i, set := range []func(*lab.Config){pair.of, pair.to} {
				one := c
				one.Strategies, one.Rounds = []string{hot}, 1
				set(&one)
				r, err := lab.Throughput(ctx, one)
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

// table writes the goals into a folder as a page.
func table(goals []goal, where lab.Machine, folder string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ratios\n\n%d CPUs, %s/%s, %s, %s, load generator included; each is the median of the pairs in brackets.\n\n",
		where.CPUs, where.OS, where.Arch, where.Go, where.Time)
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
