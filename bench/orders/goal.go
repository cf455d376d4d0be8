package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"example.com/shop/bench/throughput"
)

// goal is a ratio that is to be reached, if it has a target, and what was.
type goal struct {
	name   string
	target float64
	most   bool // the target is not to be exceeded
	pairs  []float64
}

// got is the median.
func (g goal) got() float64 {
	if len(g.pairs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(g.pairs))
	return sorted[len(sorted)/2]
}

func (g goal) reached() string {
	if g.target == 0 {
		return ""
	}
	if g.got() >= g.target != g.most || g.got() == g.target {
		return "yes"
	}
	return "no"
}

func (g goal) wanted() string {
	if g.target == 0 {
		return ""
	}
	if g.most {
		return fmt.Sprintf("at most %g", g.target)
	}
	return fmt.Sprintf("at least %g", g.target)
}

const hot = "redis-cohort"

func variantOf(r throughput.Report, name string) throughput.Variant {
	i := slices.IndexFunc(r.Variants, func(a throughput.Variant) bool { return a.Strategy == name })
	if i < 0 {
		return throughput.Variant{}
	}
	return r.Variants[i]
}

// rounds returns the ratios of a figure, round by round.
func rounds(of, to throughput.Variant, figure func(throughput.Round) float64) (ratios []float64) {
	for i, r := range of.Rounds {
		if i < len(to.Rounds) {
			ratios = append(ratios, figure(r)/figure(to.Rounds[i]))
		}
	}
	return ratios
}

func rate(r throughput.Round) float64 { return r.OrdersPerSecond }

// table writes the goals into a folder as a page, which says so if something kept the others from being
// measured.
func table(stdout io.Writer, goals []goal, incomplete error, where throughput.Machine, folder string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ratios\n\n%d CPUs, %s/%s, %s, commit %s, %s, load generator included.\n\n"+
		"## How to read it\n\nA ratio is the median of the pairs in brackets. Both runs of a pair take place one after the other.\n\n## Ratios to targets\n\n",
		where.CPUs, where.OS, where.Arch, where.Go, cmp.Or(where.Commit, "unknown"), where.Time)
	fmt.Fprintln(&b, "| ratio | wanted | measured | reached |\n|---|---|---|---|")
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, g := range goals {
		var pairs []string
		for _, p := range g.pairs {
			pairs = append(pairs, fmt.Sprintf("%.2f", p))
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f (%s) | %s |\n", g.name, g.wanted(), g.got(), strings.Join(pairs, ", "), g.reached())
		fmt.Fprintf(w, "%s\t%s\t%.2f (%s)\t%s\n", g.name, g.wanted(), g.got(), strings.Join(pairs, ", "), g.reached())
	}
	if incomplete != nil {
		fmt.Fprintf(&b, "\nThe others were not measured: %v.\n", incomplete)
	}
	if err := w.Flush(); err != nil || folder == "" {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "ratios.md"), []byte(b.String()), 0o644) //nolint:gosec // to be read
}
