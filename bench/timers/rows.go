package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/shop/internal/timeout"
)

// withRows measures timers per second that are stored in a database, and then pushed
// to the index, so many in one transaction.
func withRows(ctx context.Context, on *servers, engine string, goroutines, chunk int, d time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	db, drop, err := on.database(ctx, engine)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{Canary: true}) // it schedules, and nothing else
	if err != nil {
		return sample{}, err
	}
	o.run(ctx)
	defer func() { err = cmp.Or(err, o.stop()) }()
	before, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	var next atomic.Int64
	start := time.Now()
	err = together(goroutines, func(int) error {
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
	took := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	after, err := on.redis.Usage(ctx)
	result = sample{rate: float64(next.Load()) / took.Seconds(), n: float64(next.Load())}
	result.redis, result.own = share(before, after, took)
	return result, err
}

// rebuilding measures how long it takes to fill an empty index with n rows.
func rebuilding(ctx context.Context, on *servers, engine string, n int) (result sample, err error) {
	db, drop, err := on.database(ctx, engine)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	const chunk = 1000
	var next atomic.Int64
	due, start := time.Now().Add(unpaid), time.Now()
	err = together(4, func(int) error {
		for from := int(next.Add(chunk)) - chunk; from < n; from = int(next.Add(chunk)) - chunk {
			timers := make([]timeout.Timer, 0, chunk)
			for i := from; i < min(n, from+chunk); i++ {
				timers = append(timers, timeout.Timer{Kind: kind, ID: idOf(i), Due: due.Add(time.Duration(i) * time.Millisecond).Truncate(time.Millisecond)})
			}
			if err := rows.Insert(ctx, nil, timeout.Base, "", timers); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	inserted := time.Since(start)
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.stop()) }()
	start = time.Now()
	found, err := o.q.Rebuild(ctx, kind)
	took := time.Since(start)
	if err == nil && found != n {
		err = fmt.Errorf("%d of %d timers were rebuilt", found, n)
	}
	return sample{took: float64(took.Microseconds()), n: float64(n), rate: float64(n) / took.Seconds(), scheduled: float64(n) / inserted.Seconds()}, err
}
