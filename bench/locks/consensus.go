package main

import (
	"slices"
	"time"

	"example.com/shop/bench/measure"
)

// store is a consensus store: the locks on it, of which the first is ours, and what
// the store itself takes.
type store struct {
	name  string
	locks []subject
	floor subject
}

// oursThere is the name of our lock where there is one.
const oursThere = "ours"

func stores() []store { return []store{etcdStore(), zookeeperStore()} }

// Names of workloads on a store, alongside those on Redis.
const (
	waiting8     = "contended-8x1"       // 8 clients with a goroutine, one key
	handoverLong = "hand-off, long hold" // 2 clients
	handoverIn   = "hand-off inside"     // 1 client
)

// on names a workload on a store.
func (s store) on(workload string) string { return s.name + " " + workload }

// plan is what is measured on a store.
func (s store) plan(on *servers) []measure.Workload[sample] {
	withFloor := append(slices.Clone(s.locks), s.floor)
	return []measure.Workload[sample]{
		workload(on, s.on(alone), 1, withFloor, load{clients: 1, goroutines: 1}.run),
		workload(on, s.on(apart), 1, withFloor, load{clients: 1, goroutines: 32}.run),
		workload(on, s.on(waiting8), 1, withFloor, load{clients: 8, goroutines: 1, shared: true}.run),
		workload(on, s.on(contended), 1, withFloor, load{clients: 8, goroutines: 4, shared: true}.run),
		workload(on, s.on(handover), 1, withFloor, handOff{clients: 2, least: shortHold, more: holdSpan}.run),
		workload(on, s.on(handoverLong), 2, s.locks, handOff{clients: 2, least: longHold, more: holdSpan}.run),
		workload(on, s.on(handoverIn), 1, s.locks, handOff{clients: 1, least: shortHold, more: holdSpan}.run),
	}
}

const (
	shortHold = 5 * time.Millisecond
	longHold  = 150 * time.Millisecond
	holdSpan  = 50 * time.Millisecond
)

// handOffs is the table of what a hand-off takes on the stores.
func (r *report) handOffs() *measure.Table {
	t := &measure.Table{
		Title: "etcd and ZooKeeper: hand-off to the next holder, which waits",
		Header: []string{
			"", "another process: p50", "p99", "max", "after a long hold: p50", "p99", "max", "the same process: p50", "p99", "max",
		},
	}
	for _, s := range stores() {
		for _, name := range r.subjects(s.on(handover)) {
			row := []string{s.name + ": " + name}
			for _, workload := range []string{handover, handoverLong, handoverIn} {
				c := r.found.Cell(s.on(workload), name)
				row = append(row, measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Took(c.Worst(longest)))
			}
			t.Add(row...)
		}
	}
	return t
}

// queues is the table of the stores under contention.
func (r *report) queues() *measure.Table {
	t := &measure.Table{
		Title: "etcd and ZooKeeper: one key, locks per second",
		Header: []string{
			"", "8 clients with 1 goroutine", "lowest..highest", "wait p50", "p99", "most/least",
			"8 clients with 4 goroutines", "lowest..highest", "wait p50", "p99", "most/least", "CPU per lock: server", "clients",
		},
	}
	for _, s := range stores() {
		for _, name := range r.subjects(s.on(contended)) {
			row := []string{s.name + ": " + name}
			for _, workload := range []string{waiting8, contended} {
				c := r.found.Cell(s.on(workload), name)
				row = append(row, measure.Count(c.Mid(rate)), c.Span(rate), measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Times(c.Mid(spread)))
			}
			c := r.found.Cell(s.on(contended), name)
			t.Add(append(row, measure.Micros(c.Mid(served)), measure.Micros(c.Mid(own)))...)
		}
	}
	return t
}

// free is the table of the stores without contention.
func (r *report) free() *measure.Table {
	t := &measure.Table{
		Title: "etcd and ZooKeeper: a key for each goroutine, pairs of acquire and release per second",
		Header: []string{
			"", "1 goroutine", "acquire p50", "release p50", "32 of 1 client", "lowest..highest", "acquire p50", "p99", "CPU per pair: server", "clients",
		},
	}
	for _, s := range stores() {
		for _, name := range r.subjects(s.on(apart)) {
			one, many := r.found.Cell(s.on(alone), name), r.found.Cell(s.on(apart), name)
			t.Add(s.name+": "+name, measure.Count(one.Mid(rate)), measure.Took(one.Mid(p50)), measure.Took(one.Mid(gave50)),
				measure.Count(many.Mid(rate)), many.Span(rate), measure.Took(many.Mid(p50)), measure.Took(many.Mid(p99)), measure.Micros(many.Mid(served)), measure.Micros(many.Mid(own)))
		}
	}
	return t
}

// storeTargets compares ours with each peer, and says what the store has room for: a
// lock at its floor would reach no more.
func (r *report) storeTargets(t *measure.Table) {
	const least = 1.5
	for _, s := range stores() {
		for _, peer := range s.locks[1:] {
			judge := func(what, workload string, ratio func(ours, peer cell) float64) {
				ours, theirs := r.found.Cell(s.on(workload), oursThere), r.found.Cell(s.on(workload), peer.name)
				if len(ours) == 0 || len(theirs) == 0 {
					return
				}
				atLeast(t, s.name+", "+what, ratio(ours, theirs), least)
				if floor := r.found.Cell(s.on(workload), s.floor.name); len(floor) > 0 {
					inform(t, "at the floor of "+s.name, ratio(floor, theirs))
				}
			}
			sooner := func(ours, peer cell) float64 { return measure.Ratio(peer, ours, p50) }
			more := func(ours, peer cell) float64 { return measure.Ratio(ours, peer, rate) }
			judge("hand-off: "+peer.name+" to ours", handover, sooner)
			judge("the same after a long hold", handoverLong, sooner)
			judge("8 waiters, locks per second: ours to "+peer.name, waiting8, more)
			judge("the same with 32 waiters", contended, more)
		}
	}
}
