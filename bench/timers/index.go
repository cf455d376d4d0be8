package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/timeout"
)

// unpaid is how long an order waits in the runs in which nothing fires.
const unpaid = 15 * time.Minute

// acknowledged measures timers per second when each of 64 callers schedules one after
// the other, and waits for its own acknowledgement.
func acknowledged(ctx context.Context, on *servers, d time.Duration, schedule func(ctx context.Context, id string, due time.Time) error) (sample, error) {
	waits := make([][]time.Duration, callers)
	s, err := measured(ctx, on, func() (int, error) {
		var next atomic.Int64
		start := time.Now()
		err := measure.Together(callers, func(i int) error {
			for {
				from := time.Now()
				if from.Sub(start) > d {
					return nil
				}
				if err := schedule(ctx, idOf(int(next.Add(1))), from.Add(unpaid)); err != nil {
					return err
				}
				waits[i] = append(waits[i], time.Since(from))
			}
		})
		return int(next.Load()), err
	})
	all := slices.Sorted(slices.Values(slices.Concat(waits...)))
	s.p50, s.p99 = measure.Percentile(all, 50), measure.Percentile(all, 99)
	return s, err
}

// measured runs f, which returns the number of its timers, and measures what they take.
func measured(ctx context.Context, on *servers, f func() (n int, err error)) (sample, error) {
	before, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	n, err := f()
	took := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	after, err := on.redis.Usage(ctx)
	s := sample{rate: float64(n) / took.Seconds(), n: float64(n)}
	s.redis, s.own = share(before, after, took)
	return s, err
}

// inChunks calls f for each part of n things, four at once.
func inChunks(n, chunk int, f func(from, until int) error) error {
	var next atomic.Int64
	return measure.Together(4, func(int) error {
		for {
			from := int(next.Add(int64(chunk))) - chunk
			if from >= n {
				return nil
			}
			if err := f(from, min(n, from+chunk)); err != nil {
				return err
			}
		}
	})
}

func acknowledgedOurs(ctx context.Context, on *servers, d time.Duration) (result sample, err error) {
	o, err := emptyIndex(ctx, on)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	return acknowledged(ctx, on, d, func(ctx context.Context, id string, due time.Time) error {
		return o.index.Schedule(ctx, kind, timeout.Base, []timeout.Entry{{ID: id, At: due.Truncate(time.Millisecond)}})
	})
}

func acknowledgedAsynq(ctx context.Context, on *servers, d time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	client := asynq.NewClient(asynqOptions(on.redis))
	defer func() { err = cmp.Or(err, client.Close()) }()
	return acknowledged(ctx, on, d, func(ctx context.Context, id string, due time.Time) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(id)), asynq.ProcessAt(due))
		return err
	})
}

// emptyIndex is an index on an empty Redis.
func emptyIndex(ctx context.Context, on *servers) (*ours, error) {
	if err := on.empty(ctx); err != nil {
		return nil, err
	}
	return newOurs(on, newMemory(), timeout.Config{})
}

// fill puts n entries, a thousand in a call.
func (o *ours) fill(ctx context.Context, n int, id func(int) string, due func(int) time.Time) error {
	return inChunks(n, 1000, func(from, until int) error {
		var entries []timeout.Entry
		for i := from; i < until; i++ {
			entries = append(entries, timeout.Entry{ID: id(i), At: due(i)})
		}
		return o.index.Schedule(ctx, kind, timeout.Base, entries)
	})
}

// drainOurs measures a backlog: each shard is claimed batch by batch.
func drainOurs(ctx context.Context, on *servers, n, batch int) (result sample, err error) {
	o, err := emptyIndex(ctx, on)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	past := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	if err := o.fill(ctx, n, idOf, func(i int) time.Time { return past.Add(time.Duration(i) * time.Millisecond) }); err != nil {
		return sample{}, err
	}
	return measured(ctx, on, func() (int, error) {
		shards, fired := o.index.Shards(kind, timeout.Base), atomic.Int64{}
		err := measure.Together(len(shards), func(i int) error {
			for {
				c, err := o.index.Claim(ctx, shards[i], batch)
				if err != nil || len(c.Timers) == 0 {
					return err
				}
				fired.Add(int64(len(c.Timers)))
			}
		})
		if err == nil && int(fired.Load()) != n {
			err = fmt.Errorf("%d of %d timers were claimed", fired.Load(), n)
		}
		return n, err
	})
}

// drainAsynq measures a backlog of tasks that are ready to be processed.
func drainAsynq(ctx context.Context, on *servers, n int) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	if err := enqueue(ctx, on, n, asynq.Queue("default")); err != nil {
		return sample{}, err
	}
	var server *asynq.Server
	defer func() {
		if server != nil {
			server.Shutdown()
		}
	}()
	return measured(ctx, on, func() (int, error) {
		var fired atomic.Int64
		all := make(chan struct{})
		server, err = asynqServer(on.redis, tuned(), func([]byte) {
			if int(fired.Add(1)) == n {
				close(all)
			}
		})
		if err != nil {
			return 0, err
		}
		select {
		case <-all:
			return n, nil
		case <-time.After(patience):
			return 0, fmt.Errorf("%d of %d tasks in %v", fired.Load(), n, patience)
		}
	})
}

// enqueue hands n tasks to asynq.
func enqueue(ctx context.Context, on *servers, n int, when asynq.Option) (err error) {
	client := asynq.NewClient(asynqOptions(on.redis))
	defer func() { err = cmp.Or(err, client.Close()) }()
	var next atomic.Int64
	return measure.Together(callers, func(int) error {
		for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
			if _, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(idOf(i))), when); err != nil {
				return err
			}
		}
		return nil
	})
}
