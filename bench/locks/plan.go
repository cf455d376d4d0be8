package main

import (
	"context"
	"time"

	"example.com/shop/bench/measure"
)

// Names of workloads.
const (
	alone      = "alone"       // 1 goroutine
	apart      = "apart"       // 32 goroutines of one client, a key each
	apart8     = "apart-8x4"   // 8 clients with 4 goroutines, a key each
	contended  = "contended"   // 8 clients with 4 goroutines, one key
	handover   = "hand-off"    // 2 clients
	permit1    = "permit"      // 1 goroutine, more permits than callers
	permit32   = "permits"     // 32 goroutines of one client, the same
	permitLack = "permits-8x4" // 8 clients with 4 goroutines, fewer permits than callers
)

const (
	manyPermits = 64
	fewPermits  = 8
)

// workload is one of several subjects, each of which has run put on it.
func workload(on *servers, name string, weight int, subjects []subject, run func(context.Context, *servers, subject, time.Duration) (sample, error)) measure.Workload[sample] {
	w := measure.Workload[sample]{Name: name, Weight: weight}
	for _, s := range subjects {
		w.Cases = append(w.Cases, measure.Case[sample]{Name: s.name, Run: func(ctx context.Context, d time.Duration) (sample, error) {
			return run(ctx, on, s, d)
		}})
	}
	return w
}

// plan is everything that is measured.
func plan(on *servers) []measure.Workload[sample] {
	all := []measure.Workload[sample]{
		workload(on, alone, 1, unhurried(locks()), load{clients: 1, goroutines: 1}.run),
		workload(on, apart, 1, unhurried(locks()), load{clients: 1, goroutines: 32}.run),
		workload(on, apart8, 1, unhurried(locks()), load{clients: 8, goroutines: 4}.run),
		workload(on, contended, 2, locks(), load{clients: 8, goroutines: 4, shared: true}.run),
		workload(on, handover, 1, locks(), handOff{clients: 2, least: shortHold, more: holdSpan}.run),
		workload(on, permit1, 1, semaphores(manyPermits), load{clients: 1, goroutines: 1, shared: true}.run),
		workload(on, permit32, 1, semaphores(manyPermits), load{clients: 1, goroutines: 32, shared: true}.run),
		workload(on, permitLack, 2, semaphores(fewPermits), load{clients: 8, goroutines: 4, shared: true}.run),
		workload(on, fiveWell, 2, fiveLocks(), load{clients: 1, goroutines: 1}.run),
		workload(on, fiveFrozen, 3, fiveLocks(), load{clients: 1, goroutines: 1, fault: freezeOne}.run),
	}
	for _, s := range stores() {
		all = append(all, s.plan(on)...)
	}
	for _, e := range engines() {
		all = append(all, e.plan(on)...)
	}
	return all
}
