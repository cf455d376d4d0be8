package main

import (
	_ "embed"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"example.com/shop/bench/measure"
)

// page is the document that the tables are put into.
//
//go:embed report.md.tmpl
var page string

// report is everything that was found.
type report struct {
	quick bool
	found measure.Findings[sample]
}

// busy says whether other work wanted more than all cores before the run.
func busy(loadBefore string) bool {
	load, _, _ := strings.Cut(loadBefore, " ")
	n, err := strconv.ParseFloat(load, 64)
	return err == nil && n > float64(runtime.NumCPU())
}

func (r *report) tables() []*measure.Table {
	return []*measure.Table{r.targets(), r.lateness(), r.index(), r.memory(), r.rows(), r.expiry()}
}

// measured returns the cases of a workload that were measured, in the order of the plan.
func (r *report) measured(workload string) []string {
	var names []string
	for _, w := range plan(nil, r.quick) {
		for _, c := range w.Cases {
			if w.Name == workload && len(r.found.Cell(workload, c.Name)) > 0 {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func (r *report) lateness() *measure.Table {
	t := &measure.Table{Title: "Firing delay: from the due time of a timer to its handler", Header: []string{
		"", "scheduled per second", "fired in the best second", "min", "p50", "p99", "p99.9", "max", "floor p99", "p99 - floor",
		"early", "last fired after the last was due", "CPU: Redis", "program",
	}}
	for _, workload := range []string{late, slow} {
		for _, name := range r.measured(workload) {
			c := r.found.Cell(workload, name)
			t.Add(name, measure.Count(c.Mid(scheduled)), measure.Count(c.Mid(fired)),
				measure.Took(c.Least(least)), measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Took(c.Mid(p999)), measure.Took(c.Worst(longest)),
				measure.Took(c.Mid(floor)), measure.Took(c.Mid(over)), percent(c.Worst(early)), measure.Took(c.Mid(behind)),
				percent(c.Mid(redisCPU)), percent(c.Mid(own)))
		}
	}
	return t
}

func (r *report) index() *measure.Table {
	t := &measure.Table{Title: "The index alone", Header: []string{
		"", "per second", "lowest..highest", "p50", "p99", "CPU: Redis", "program", "per second of Redis's CPU",
	}}
	for _, w := range []struct{ workload, what string }{
		{acked, fmt.Sprintf("schedule, acknowledged one by one, %d goroutines: ", callers)},
		{drain, "claim a backlog: "},
	} {
		for _, name := range r.measured(w.workload) {
			c := r.found.Cell(w.workload, name)
			row := []string{w.what + name, measure.Count(c.Mid(rate)), c.Span(rate), "", "", percent(c.Mid(redisCPU)), percent(c.Mid(own)), measure.Count(c.Mid(capacity))}
			if w.workload == acked {
				row[3], row[4] = measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99))
			}
			t.Add(row...)
		}
	}
	return t
}

func (r *report) memory() *measure.Table {
	t := &measure.Table{Title: "Many timers", Header: []string{"", "timers", "Redis, bytes per timer", "took", "per second"}}
	for _, name := range r.measured(pending) {
		c := r.found.Cell(pending, name)
		t.Add("pending: "+name, whole(c.Mid(number)), fmt.Sprintf("%.0f", c.Mid(size)), "", measure.Count(c.Mid(rate)))
	}
	for _, name := range r.measured(lost) {
		c := r.found.Cell(lost, name)
		t.Add("pass after a loss, rows in "+name, whole(c.Mid(number)), "", measure.Took(c.Mid(took)), measure.Count(c.Mid(rate)))
		t.Add("insert their rows into "+name+", 1000 per transaction", whole(c.Mid(number)), "", "", measure.Count(c.Mid(scheduled)))
	}
	return t
}

func (r *report) rows() *measure.Table {
	t := &measure.Table{Title: "Schedule with its row: timers per second", Header: []string{"", "per second", "lowest..highest", "CPU: Redis", "program"}}
	for _, name := range r.measured(rowed) {
		c := r.found.Cell(rowed, name)
		t.Add(name, measure.Count(c.Mid(rate)), c.Span(rate), percent(c.Mid(redisCPU)), percent(c.Mid(own)))
	}
	return t
}

func (r *report) expiry() *measure.Table {
	t := &measure.Table{
		Title:  fmt.Sprintf("Orders that expire, on MariaDB, in batches of %d", expireMany),
		Header: []string{"", "orders", "per second", "lowest..highest", "took", "first handler called after", "handled by the overdue scan"},
	}
	for _, name := range r.measured(expiry) {
		c, first, sweeps := r.found.Cell(expiry, name), "", ""
		if name == throughQueue {
			first, sweeps = measure.Took(c.Mid(least)), whole(c.Mid(swept))
		}
		t.Add(name, whole(c.Mid(number)), measure.Count(c.Mid(rate)), c.Span(rate), measure.Took(c.Mid(took)), first, sweeps)
	}
	return t
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func whole(n float64) string { return fmt.Sprintf("%.0f", n) }
