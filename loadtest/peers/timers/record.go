package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"example.com/shop/loadtest/peers/bench"
)

// record is when the timers of a run fired.
type record struct {
	late  []time.Duration // of each timer; meaningful if it was seen
	at    []time.Time     // when each fired
	due   []time.Time
	seen  []atomic.Bool
	twice atomic.Int64
	fired atomic.Int64
	all   chan struct{} // closed when all have fired
}

func newRecord(n int) *record {
	return &record{
		late: make([]time.Duration, n), at: make([]time.Time, n), due: make([]time.Time, n),
		seen: make([]atomic.Bool, n), all: make(chan struct{}),
	}
}

// fire is called by handlers.
func (r *record) fire(a alarm, now time.Time) {
	if r.seen[a.n].Swap(true) {
		r.twice.Add(1)
		return
	}
	r.late[a.n], r.at[a.n], r.due[a.n] = now.Sub(a.due), now, a.due
	if int(r.fired.Add(1)) == len(r.late) {
		close(r.all)
	}
}

// wait returns when all have fired, or patience is at its end.
func (r *record) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-r.all:
	case <-ctx.Done():
	}
}

// summary is called when nothing fires any more, or what does shall not count.
func (r *record) summary(floor float64) sample {
	var late []time.Duration
	var at, due []time.Time
	s := sample{n: float64(len(r.late)), twice: float64(r.twice.Load()), floor: floor}
	done := int(r.fired.Load()) == len(r.late)
	for i := range r.late {
		switch {
		case !done && !r.seen[i].Load():
			s.lost++
			continue
		case r.late[i] < 0:
			s.early++
		}
		late, at, due = append(late, r.late[i]), append(at, r.at[i]), append(due, r.due[i])
	}
	slices.Sort(late)
	s.min, s.p50, s.p99 = bench.Percentile(late, 0), bench.Percentile(late, 50), bench.Percentile(late, 99)
	s.p999, s.max = bench.Percentile(late, 99.9), bench.Percentile(late, 100)
	s.over = s.p99 - floor
	slices.SortFunc(at, time.Time.Compare)
	slices.SortFunc(due, time.Time.Compare)
	if len(at) > 0 {
		s.behind = float64(at[len(at)-1].Sub(due[len(due)-1]).Microseconds())
	}
	s.fired = float64(best(at))
	return s
}

// best returns how many of sorted moments fall into the second with the most.
func best(at []time.Time) int {
	most, from := 0, 0
	for i, t := range at {
		for t.Sub(at[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
