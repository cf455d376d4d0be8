package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/shop/bench/measure"
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

// rebuilding measures how long it takes to fill an empty index with n rows.
func rebuilding(ctx context.Context, on *servers, engine string, n int) (result sample, err error) {
	o, err := openOurs(ctx, on, engine, timeout.Config{})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	due, start := time.Now().Add(unpaid), time.Now()
	err = inChunks(n, 1000, func(from, until int) error {
		var timers []timeout.Timer
		for i := from; i < until; i++ {
			at := due.Add(time.Duration(i) * time.Millisecond).Truncate(time.Millisecond)
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
	found, err := o.q.Rebuild(ctx, kind)
	took := time.Since(start)
	if err == nil && found != n {
		err = fmt.Errorf("%d of %d timers were rebuilt", found, n)
	}
	return sample{took: float64(took.Microseconds()), n: float64(n), rate: float64(n) / took.Seconds(), scheduled: float64(n) / inserted.Seconds()}, err
}
