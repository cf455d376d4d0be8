package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
)

// page is the document that the tables are put into.
//
//go:embed report.md.tmpl
var page string

// report is everything that was found.
type report struct {
	where    conditions
	settings settings
	found    findings
}

// text writes the tables for a terminal.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s %s, Redis %s, %s\nload average %s before, %s after\n", r.where.cpu,
		r.where.system, r.where.kernel, r.where.redis, strings.Join(r.where.libraries, ", "), r.where.loadBefore, r.where.loadAfter)
	for _, t := range r.tables() {
		if err := t.text(w); err != nil {
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
		"Date": r.where.date, "CPU": r.where.cpu, "System": r.where.system, "Kernel": r.where.kernel,
		"Redis": r.where.redis, "Libraries": strings.Join(r.where.libraries, ", "),
		"LoadBefore": r.where.loadBefore, "LoadAfter": r.where.loadAfter,
		"Rounds": r.settings.rounds, "Cell": r.settings.cell, "TTL": ttl, "Pool": poolSize,
		"Few": fewPermits, "Many": manyPermits, "Tables": r.tables(),
	})
}

// tables are those that have anything in them.
func (r *report) tables() []*table {
	all := []*table{
		r.targets(), r.uncontended(), r.contention("Contended: 8 clients with 4 goroutines each, one key", contended),
		r.handOff(), r.permits(), r.contention(fmt.Sprintf("Semaphore at its limit: 8 clients with 4 goroutines each, %d permits", fewPermits), permitLack),
	}
	return slices.DeleteFunc(all, func(t *table) bool { return len(t.rows) == 0 })
}

// subjects returns those of a workload that were measured, in the order of the plan.
func (r *report) subjects(name string) []string {
	var names []string
	for _, w := range plan() {
		for _, s := range w.subjects {
			if w.name == name && len(r.found[name][s.name]) > 0 {
				names = append(names, s.name)
			}
		}
	}
	return names
}

func (r *report) uncontended() *table {
	t := &table{
		title: "Uncontended: a key for each goroutine, pairs of acquire and release per second",
		header: []string{
			"", "1 goroutine", "32 of 1 client", "lowest..highest", "32 of 8 clients",
			"acquire p50, 32 of 1", "p99", "client commands per pair", "calls in Redis", "CPU per pair: Redis", "clients",
		},
	}
	for _, name := range r.subjects(apart) {
		c := r.found[apart][name]
		label := name
		if !strings.HasPrefix(name, "ours") {
			label, _, _ = strings.Cut(name, ",") // nobody waits here: the delay makes no difference
		}
		t.add(label, count(r.found[alone][name].mid(rate)), count(c.mid(rate)), span(c.of(rate)),
			count(r.found[apart8][name].mid(rate)), took(c.mid(p50)), took(c.mid(p99)),
			times(c.mid(commands)), times(c.mid(calls)), took1(c.mid(cpu)), took1(c.mid(own)))
	}
	return t
}

// contention is the table of a workload in which callers wait for each other.
func (r *report) contention(title, workload string) *table {
	t := &table{title: title, header: []string{
		"", "per second", "lowest..highest", "wait p50", "p99", "max", "least and most of one goroutine", "most/least",
		"client commands per acquisition", "calls in Redis", "CPU per acquisition: Redis", "clients", "Redis busy",
	}}
	for _, name := range r.subjects(workload) {
		c := r.found[workload][name]
		t.add(name, count(c.mid(rate)), span(c.of(rate)), took(c.mid(p50)), took(c.mid(p99)), took(c.worst(longest)),
			count(c.mid(least))+", "+count(c.mid(most)), times(c.mid(spread)),
			times(c.mid(commands)), times(c.mid(calls)), took1(c.mid(cpu)), took1(c.mid(own)),
			fmt.Sprintf("%.0f%%", 100*c.mid(rate)*c.mid(cpu)/1e6))
	}
	return t
}

func (r *report) handOff() *table {
	t := &table{
		title:  "Hand-off: from the call of release to the next holder, on another client, which waits",
		header: []string{"", "p50", "p99", "max"},
	}
	for _, name := range r.subjects(handover) {
		c := r.found[handover][name]
		t.add(name, took(c.mid(p50)), took(c.mid(p99)), took(c.worst(longest)))
	}
	return t
}

func (r *report) permits() *table {
	t := &table{
		title: fmt.Sprintf("Semaphore per request: one permit of %d, one key, pairs of acquire and release per second", manyPermits),
		header: []string{
			"", "1 goroutine", "32 of 1 client", "lowest..highest", "acquire p50, 32 of 1", "p99",
			"client commands per pair", "calls in Redis", "CPU per pair: Redis", "clients",
		},
	}
	for _, name := range r.subjects(permit32) {
		c := r.found[permit32][name]
		t.add(name, count(r.found[permit1][name].mid(rate)), count(c.mid(rate)), span(c.of(rate)), took(c.mid(p50)), took(c.mid(p99)),
			times(c.mid(commands)), times(c.mid(calls)), took1(c.mid(cpu)), took1(c.mid(own)))
	}
	return t
}

// span writes the lowest and the highest of a few numbers.
func span(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return count(slices.Min(values)) + ".." + count(slices.Max(values))
}

// took1 writes microseconds with one digit more than took.
func took1(us float64) string {
	if math.IsNaN(us) {
		return "-"
	}
	return fmt.Sprintf("%.1f µs", us)
}
