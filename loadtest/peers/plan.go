package main

import (
	"context"
	"fmt"
	"io"
	"time"
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

// workload is one thing to measure, and on what.
type workload struct {
	name     string
	weight   int // of its share of the time
	subjects []subject
	run      func(ctx context.Context, t *target, s subject, d time.Duration) (sample, error)
}

func plan() []workload {
	return []workload{
		{alone, 1, unhurried(locks()), load{clients: 1, goroutines: 1}.run},
		{apart, 1, unhurried(locks()), load{clients: 1, goroutines: 32}.run},
		{apart8, 1, unhurried(locks()), load{clients: 8, goroutines: 4}.run},
		{contended, 2, locks(), load{clients: 8, goroutines: 4, shared: true}.run},
		{handover, 1, locks(), handOff},
		{permit1, 1, semaphores(manyPermits), load{clients: 1, goroutines: 1, shared: true}.run},
		{permit32, 1, semaphores(manyPermits), load{clients: 1, goroutines: 32, shared: true}.run},
		{permitLack, 2, semaphores(fewPermits), load{clients: 8, goroutines: 4, shared: true}.run},
	}
}

// findings are the cells by the names of workload and subject.
type findings map[string]map[string]cell

// measure runs all cells in rounds. In every round another subject is the first.
func measure(ctx context.Context, t *target, s settings, progress io.Writer) (findings, error) {
	found := findings{}
	for round := range s.rounds {
		fmt.Fprintf(progress, "peers: round %d of %d\n", round+1, s.rounds)
		for _, w := range plan() {
			for i := range w.subjects {
				subject := w.subjects[(i+round)%len(w.subjects)]
				if !s.only.MatchString(w.name + "/" + subject.name) {
					continue
				}
				d := s.cell * time.Duration(w.weight) / time.Duration(s.rounds)
				got, err := w.run(ctx, t, subject, d)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", w.name, subject.name, err)
				}
				if found[w.name] == nil {
					found[w.name] = map[string]cell{}
				}
				found[w.name][subject.name] = append(found[w.name][subject.name], got)
			}
		}
	}
	return found, nil
}
