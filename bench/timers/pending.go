package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

// usedMemory returns what Redis has allocated.
func usedMemory(ctx context.Context, on *servers) (float64, error) {
	info, err := on.redis.Info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["used_memory"], 64)
}

// memoryOurs measures what n pending timers take.
func memoryOurs(ctx context.Context, on *servers, n int, id func(int) string) (result sample, err error) {
	o, err := emptyIndex(ctx, on)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	due := time.Now().Add(unpaid).Truncate(time.Millisecond)
	return grown(ctx, on, n, func() error {
		return o.fill(ctx, n, id, func(i int) time.Time { return due.Add(time.Duration(i) * time.Millisecond) })
	})
}

func memoryAsynq(ctx context.Context, on *servers, n int) (sample, error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	return grown(ctx, on, n, func() error { return enqueue(ctx, on, n, asynq.ProcessIn(unpaid)) })
}

func grown(ctx context.Context, on *servers, n int, fill func() error) (sample, error) {
	before, err := usedMemory(ctx, on)
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	if err := fill(); err != nil {
		return sample{}, err
	}
	took := time.Since(start)
	after, err := usedMemory(ctx, on)
	return sample{bytes: (after - before) / float64(n), n: float64(n), rate: float64(n) / took.Seconds()}, err
}
