package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/timeout"
)

// withRows measures timers per second that are stored in a database, and then pushed
// to the index, so many in one transaction.
func withRows(ctx context.Context, on *servers, engine string, goroutines, chunk int, d time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	o, err := openOurs(ctx, on, engine, timeout.Config{Canary: true}) // it schedules, and nothing else
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	o.run(ctx)
	return measured(ctx, on, func() (int, error) {
		var next atomic.Int64
		start := time.Now()
		err := measure.Together(goroutines, func(int) error {
			timers := make([]timeout.Timer, chunk)
			for time.Since(start) < d {
				for i := range timers {
					timers[i] = timeout.Timer{Kind: kind, ID: idOf(int(next.Add(1))), Due: time.Now().Add(unpaid)}
				}
				push, err := o.q.Schedule(ctx, nil, timers...)
				if err != nil {
					return err
				}
				push()
			}
			return nil
		})
		return int(next.Load()), err
	})
}

// passing measures how long the first pass over an empty index takes, among n rows that are due within 15 minutes.
func passing(ctx context.Context, on *servers, engine string, n int) (result sample, err error) {
	o, err := openOurs(ctx, on, engine, timeout.Config{})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	due, start := time.Now(), time.Now()
	err = inChunks(n, 1000, func(from, until int) error {
		var timers []timeout.Timer
		for i := from; i < until; i++ {
			at := due.Add(settling + unpaid*time.Duration(i+1)/time.Duration(n)).Truncate(time.Millisecond)
			timers = append(timers, timeout.Timer{Kind: kind, ID: idOf(i), Due: at})
		}
		return o.rows.Insert(ctx, nil, timeout.Base, "", timers)
	})
	if err != nil {
		return sample{}, err
	}
	inserted := time.Since(start)
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	start = time.Now()
	found, err := o.firstPass(ctx)
	took := time.Since(start) // with the count of the rows that it waits for
	return sample{took: float64(took.Microseconds()), n: float64(n), rate: float64(found) / took.Seconds(), scheduled: float64(n) / inserted.Seconds()}, err
}

// firstPass runs the queue until the index has the timers of the next minute, and returns how many it has.
func (o *ours) firstPass(ctx context.Context) (found int, err error) {
	handler := func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		return make([]timeout.Outcome, len(batch)), nil
	}
	if err := o.q.Handle(kind, handler, timeout.Options{}); err != nil {
		return 0, err
	}
	count := func(until time.Duration) (n int, err error) {
		f := timeout.Filter{Kind: kind, State: timeout.Open, Until: time.Now().Add(until), Limit: 5000, Brief: true}
		for {
			rows, err := o.rows.List(ctx, f)
			if n += len(rows); err != nil || len(rows) < f.Limit {
				return n, err
			}
			f.After = rows[len(rows)-1]
		}
	}
	want, err := count(55 * time.Second)
	if err != nil {
		return 0, err
	}
	past, err := count(5 * time.Second)
	if err != nil {
		return 0, err
	}
	o.run(ctx)
	for end := time.Now().Add(patience); found < want-past; backoff.Sleep(ctx, time.Millisecond) {
		if found, err = o.index.Pending(ctx, kind, timeout.Base); err != nil {
			return 0, err
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("the index has %d of %d timers after %v", found, want, patience)
		}
	}
	return found, nil
}
