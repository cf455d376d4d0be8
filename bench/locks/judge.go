package main

import (
	"fmt"
	"math"
	"strings"

	"example.com/shop/bench/measure"
)

// fairEnough is the greatest most/least of a peer that the contended target
// counts: one that lets a single goroutine lock again and again shares nothing.
const fairEnough = 10

// targets compares ours with the peers.
func (r *report) targets() *measure.Table {
	t := &measure.Table{Title: "Targets", Header: []string{"", "reached", "target", ""}}
	ours, peer := r.found[alone][oursQueue], r.found[alone][bsmFast]
	if len(ours) > 0 && len(peer) > 0 {
		atLeast(t, "uncontended, one goroutine: ours, queue to bsm/redislock", measure.Ratio(ours, peer, rate), 0.9)
	}
	ours, peer = r.found[apart][oursQueue], r.found[apart][bsmFast]
	if len(ours) > 0 && len(peer) > 0 {
		atLeast(t, "uncontended, 32 goroutines of 1 client: ours, queue to bsm/redislock", measure.Ratio(ours, peer, rate), 1.0)
		atLeast(t, "the same by CPU time per pair", measure.Ratio(peer, ours, work), 1.3)
	}
	if ours = r.found[contended][oursShared]; len(ours) > 0 {
		r.contendedTargets(t, ours)
	}
	r.redlockTargets(t)
	r.storeTargets(t)
	return t
}

// contendedTargets are those of the queue in Redis with the decorator.
func (r *report) contendedTargets(t *measure.Table, ours cell) {
	if name := best(r.found[contended]); name != "" {
		atLeast(t, "contended: ours, share to "+name, measure.Ratio(ours, r.found[contended][name], rate), 8)
		inform(t, "the same by CPU time per lock", measure.Ratio(r.found[contended][name], ours, work))
	}
	atMost(t, "contended: most/least of ours, share", ours.Mid(spread), 1.1)
	atMost(t, "contended: client commands per lock of ours, share", ours.Mid(commands), 2.1)
}

// best is the fastest peer that is fair enough, or nothing.
func best(cells map[string]cell) string {
	name := ""
	for other, c := range cells {
		if strings.HasPrefix(other, "ours") || c.Mid(spread) > fairEnough {
			continue
		}
		if name == "" || c.Mid(rate) > cells[name].Mid(rate) {
			name = other
		}
	}
	return name
}

func atLeast(t *measure.Table, what string, got, want float64) {
	t.Add(what, measure.Times(got), fmt.Sprintf(">= %v", want), measure.Verdict(got >= want))
}

func atMost(t *measure.Table, what string, got, want float64) {
	t.Add(what, measure.Times(got), fmt.Sprintf("<= %v", want), measure.Verdict(!math.IsNaN(got) && got <= want))
}

func inform(t *measure.Table, what string, got float64) { t.Add(what, measure.Times(got), "", "") }
