package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/bench/measure"
)

// record is when the timers of a run fired.
type record struct {
	all chan struct{} // closed when all have fired

	mu    sync.Mutex
	seen  []bool
	fired []firing
	twice int
	over  bool // what fires now does not count
}

// firing is one timer that has fired.
type firing struct{ due, at time.Time }

func newRecord(n int) *record {
	return &record{all: make(chan struct{}), seen: make([]bool, n), fired: make([]firing, 0, n)}
}

// fire is called by handlers.
func (r *record) fire(a alarm, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return
	case r.seen[a.n]:
		r.twice++
		return
	}
	r.seen[a.n] = true
	if r.fired = append(r.fired, firing{a.due, now}); len(r.fired) == len(r.seen) {
		close(r.all)
	}
}

// wait returns when all have fired, or after the maximum wait.
func (r *record) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-r.all:
	case <-ctx.Done():
	}
}

// summary ends the record.
func (r *record) summary(floor float64) sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	n := len(r.seen)
	s := sample{n: float64(n), lost: float64(n - len(r.fired)), twice: float64(r.twice), floor: floor}
	late, last := make([]time.Duration, len(r.fired)), time.Time{}
	for i, f := range r.fired {
		if late[i] = f.at.Sub(f.due); late[i] < 0 {
			s.early++
		}
		if f.due.After(last) {
			last = f.due
		}
	}
	slices.Sort(late)
	s.min, s.p50, s.p99 = measure.Percentile(late, 0), measure.Percentile(late, 50), measure.Percentile(late, 99)
	s.p999, s.max = measure.Percentile(late, 99.9), measure.Percentile(late, 100)
	s.over = s.p99 - floor
	slices.SortFunc(r.fired, func(a, b firing) int { return a.at.Compare(b.at) })
	if len(r.fired) > 0 {
		s.behind = float64(r.fired[len(r.fired)-1].at.Sub(last).Microseconds())
	}
	s.fired = float64(best(r.fired))
	return s
}

// best returns how many firings, in the order of time, fall into the second with the most.
func best(fired []firing) int {
	most, from := 0, 0
	for i, f := range fired {
		for f.at.Sub(fired[from].at) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
