package main

import (
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"example.com/shop/bench/measure"
)

// page is the document that the tables are put into.
//
//go:embed report.md.tmpl
var page string

// report is everything that was found.
type report struct {
	where     measure.Machine
	versions  map[string]string
	loadAfter string
	settings  measure.Settings
	found     measure.Findings[sample]
}

// text writes the tables for a terminal.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s %s, Redis %s, MariaDB %s, %s\nload average %s before, %s after\n", r.where.CPU, r.where.System, r.where.Kernel,
		r.versions["Redis"], r.versions["MariaDB"], strings.Join(r.where.Libraries, ", "), r.where.LoadBefore, r.loadAfter)
	for _, t := range r.tables() {
		if err := t.Text(w); err != nil {
			return err
		}
	}
	return nil
}

// markdown writes the whole document.
func (r *report) markdown(w io.Writer) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{
		"Date": r.where.Date, "CPU": r.where.CPU, "System": r.where.System, "Kernel": r.where.Kernel,
		"Redis": r.versions["Redis"], "MariaDB": r.versions["MariaDB"], "Libraries": strings.Join(r.where.Libraries, ", "),
		"LoadBefore": r.where.LoadBefore, "LoadAfter": r.loadAfter, "Rounds": r.settings.Rounds,
		"Cell": r.settings.Cell, "Soonest": soonest, "Latest": latest, "Callers": callers, "Batch": expireMany,
		"Tables": r.tables(), "Busy": r.busy(),
	})
}

// busy says whether other work wanted more than all cores before the run.
func (r *report) busy() bool {
	load, _, _ := strings.Cut(r.where.LoadBefore, " ")
	n, err := strconv.ParseFloat(load, 64)
	return err == nil && n > float64(runtime.NumCPU())
}

// tables are those that have anything in them.
func (r *report) tables() []*measure.Table {
	all := []*measure.Table{r.targets(), r.lateness(), r.index(), r.memory(), r.rows(), r.expiry()}
	return slices.DeleteFunc(all, func(t *measure.Table) bool { return len(t.Rows) == 0 })
}

// measured returns the cases of a workload that were measured, in the order of the plan.
func (r *report) measured(workload string) []string {
	var names []string
	for _, w := range plan(nil, r.settings.Quick) {
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
	for _, name := range r.measured(rebuild) {
		c := r.found.Cell(rebuild, name)
		t.Add("rebuild the index from "+name, whole(c.Mid(number)), "", measure.Took(c.Mid(took)), measure.Count(c.Mid(rate)))
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
