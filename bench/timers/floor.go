package main

import (
	"slices"
	"sync"
	"time"

	"example.com/shop/bench/measure"
)

const (
	sleepers = 4
	nap      = 2 * time.Millisecond
)

// noise starts sleepers that do nothing but wait for a moment, alongside the load and in
// the same process: how late they are is how late anything is on this machine at
// this time. Stop returns their p99 in microseconds.
func noise() (stop func() float64) {
	end := make(chan struct{})
	late := make([][]time.Duration, sleepers)
	var all sync.WaitGroup
	for i := range late {
		all.Go(func() {
			wake := time.NewTimer(nap)
			for {
				due := time.Now().Add(nap)
				wake.Reset(nap)
				select {
				case <-end:
					return
				case <-wake.C:
					late[i] = append(late[i], time.Since(due))
				}
			}
		})
	}
	return func() float64 {
		close(end)
		all.Wait()
		sorted := slices.Sorted(slices.Values(slices.Concat(late...)))
		return measure.Percentile(sorted, 99)
	}
}
