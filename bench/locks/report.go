package main

import (
	_ "embed"
	"fmt"
	"strings"

	"example.com/shop/bench/measure"
)

// page is the document that the tables are put into.
//
//go:embed report.md.tmpl
var page string

// report is everything that was found.
type report struct{ found measure.Findings[sample] }

// values are what the page says of the settings.
var values = map[string]any{"TTL": ttl, "Pool": measure.PoolSize, "Few": fewPermits, "Many": manyPermits}

func (r *report) tables() []*measure.Table {
	return []*measure.Table{
		r.targets(), r.uncontended(), r.contention("Contended: 8 clients with 4 goroutines each, one key", contended),
		r.handOff(), r.permits(), r.contention(fmt.Sprintf("Semaphore at its limit: 8 clients with 4 goroutines each, %d permits", fewPermits), permitLack),
		r.redlockTable(), r.handOffs(), r.queues(), r.free(), r.sqlTable(),
	}
}

// subjects returns those of a workload that were measured, in the order of the plan.
func (r *report) subjects(name string) []string {
	var names []string
	for _, w := range plan(nil) {
		for _, c := range w.Cases {
			if w.Name == name && len(r.found[name][c.Name]) > 0 {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func (r *report) uncontended() *measure.Table {
	t := &measure.Table{
		Title: "Uncontended: a key for each goroutine, pairs of acquire and release per second",
		Header: []string{
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
		t.Add(label, measure.Count(r.found[alone][name].Mid(rate)), measure.Count(c.Mid(rate)), c.Span(rate),
			measure.Count(r.found[apart8][name].Mid(rate)), measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)),
			measure.Times(c.Mid(commands)), measure.Times(c.Mid(calls)), measure.Micros(c.Mid(cpu)), measure.Micros(c.Mid(own)))
	}
	return t
}

// contention is the table of a workload in which callers wait for each other.
func (r *report) contention(title, workload string) *measure.Table {
	t := &measure.Table{Title: title, Header: []string{
		"", "per second", "lowest..highest", "wait p50", "p99", "max", "least and most of one goroutine", "most/least",
		"client commands per acquisition", "calls in Redis", "CPU per acquisition: Redis", "clients", "Redis busy",
	}}
	for _, name := range r.subjects(workload) {
		c := r.found[workload][name]
		t.Add(name, measure.Count(c.Mid(rate)), c.Span(rate), measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Took(c.Worst(longest)),
			measure.Count(c.Mid(least))+", "+measure.Count(c.Mid(most)), measure.Times(c.Mid(spread)),
			measure.Times(c.Mid(commands)), measure.Times(c.Mid(calls)), measure.Micros(c.Mid(cpu)), measure.Micros(c.Mid(own)),
			fmt.Sprintf("%.0f%%", 100*c.Mid(rate)*c.Mid(cpu)/1e6))
	}
	return t
}

func (r *report) handOff() *measure.Table {
	t := &measure.Table{
		Title:  "Hand-off: from the call of release to the next holder, on another client, which waits",
		Header: []string{"", "p50", "p99", "max"},
	}
	for _, name := range r.subjects(handover) {
		c := r.found[handover][name]
		t.Add(name, measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Took(c.Worst(longest)))
	}
	return t
}

func (r *report) permits() *measure.Table {
	t := &measure.Table{
		Title: fmt.Sprintf("Semaphore per request: one permit of %d, one key, pairs of acquire and release per second", manyPermits),
		Header: []string{
			"", "1 goroutine", "32 of 1 client", "lowest..highest", "acquire p50, 32 of 1", "p99",
			"client commands per pair", "calls in Redis", "CPU per pair: Redis", "clients",
		},
	}
	for _, name := range r.subjects(permit32) {
		c := r.found[permit32][name]
		t.Add(name, measure.Count(r.found[permit1][name].Mid(rate)), measure.Count(c.Mid(rate)), c.Span(rate), measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)),
			measure.Times(c.Mid(commands)), measure.Times(c.Mid(calls)), measure.Micros(c.Mid(cpu)), measure.Micros(c.Mid(own)))
	}
	return t
}
