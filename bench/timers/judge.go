package main

import (
	"fmt"
	"slices"

	"example.com/shop/bench/measure"
)

// targets compares what was found with what was aimed at.
func (r *report) targets() *measure.Table {
	t := &measure.Table{Title: "Targets", Header: []string{"", "reached", "target", ""}}
	judge := func(workload, name, what, target string, show func(cell) string, reached func(cell) bool) {
		if c := r.found.Cell(workload, name); len(c) > 0 {
			t.Add(what, show(c), target, measure.Verdict(reached(c)))
		}
	}
	if c := r.found.Cell(late, at(oursMemory, highRate)); len(c) > 0 {
		t.Add(precision(c)...)
	}
	judge(late, at(oursMemory, highRate), "the same: earliest firing, relative to due", ">= 0",
		func(c cell) string { return measure.Took(c.Least(least)) }, func(c cell) bool { return c.Least(least) >= 0 })
	judge(acked, oursIndex, "schedule per second, each with its acknowledgement", ">= 100k",
		func(c cell) string { return measure.Count(c.Mid(rate)) }, func(c cell) bool { return c.Mid(rate) >= 100_000 })
	judge(drain, oursIndex+", batches of 128", "claim per second, batches of 128", ">= 150k",
		func(c cell) string { return measure.Count(c.Mid(rate)) }, func(c cell) bool { return c.Mid(rate) >= 150_000 })
	judge(pending, shortID, "bytes of Redis per pending timer, ids of 16 digits", "<= 150",
		func(c cell) string { return whole(c.Mid(size)) }, func(c cell) bool { return c.Mid(size) <= 150 })
	judge(lost, inMaria, "a pass after a loss, among 1M rows of MariaDB", "< 5 s",
		func(c cell) string { return measure.Took(c.Mid(took)) }, func(c cell) bool { return c.Mid(took) < 5e6 })
	judge(expiry, throughQueue, "orders expired per second, end to end", ">= 20k",
		func(c cell) string { return measure.Count(c.Mid(rate)) }, func(c cell) bool { return c.Mid(rate) >= 20_000 })
	return t
}

const (
	aboveFloor = 3000 // µs: the target
	quietFloor = 3000 // µs: with a greater floor the machine, and not the queue, is measured
)

// precision is the row of the target of the firing delay. It is judged by the rounds in which the machine itself could
// have reached it.
func precision(c cell) []string {
	const what = "20k schedule/s + 20k fire/s: p99 firing delay above the floor"
	quiet := slices.DeleteFunc(slices.Clone(c), func(s sample) bool { return s.floor > quietFloor })
	if len(quiet) == 0 {
		return []string{what, measure.Took(c.Mid(over)), "<= 3 ms", "not judged: the floor is above 3 ms in every round"}
	}
	return []string{
		fmt.Sprintf("%s, in %d of %d rounds with a floor of at most 3 ms", what, len(quiet), len(c)),
		measure.Took(quiet.Mid(over)), "<= 3 ms", measure.Verdict(quiet.Mid(over) <= aboveFloor),
	}
}
