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

// noise starts sleepers alongside the load, in the same process. Their delay is the noise floor of the machine at
// this time. Stop returns its p99 in microseconds.
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
