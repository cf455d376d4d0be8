package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/redisx"
)

// pointLost is the point at which a worker is notified that its lease is lost. The value is the reason.
const pointLost = "lost"

// leaseWorker holds a lease of the key of its task until the lab lets it continue, and reports its loss at once. It stops at
// [pointReady] and [pointLocked], and reports [pointReleased].
func leaseWorker(ctx context.Context, w *Worker) error {
	locker, err := w.locker()
	if err != nil {
		return err
	}
	if err := w.Stops(pointReady, ""); err != nil {
		return err
	}
	lease, err := persist(ctx, locker, w.Task["key"])
	if err != nil {
		return err
	}
	lease.OnEnd(func(outcome error) {
		if lost, ok := errors.AsType[*dlock.LostError](outcome); ok {
			w.Says(pointLost, "%s", lost.Reason)
		}
	})
	if err := w.Stops(pointLocked, "%d", lease.Fence().Token); err != nil {
		return err
	}
	err = lease.Release(ctx)
	w.Says(pointReleased, "%v", err)
	return nil
}

// locker is what the lock services of labs have in common.
type locker interface {
	dlock.Locker
	dlock.MultiLocker
}

// locker returns the locker of a task: [redlock] on the addresses in "servers", or [redislock] on the address in "redis". The task
// has its ttl, and may have settle, max-hold and prefix. It ends with the process.
func (w *Worker) locker() (locker, error) {
	ttl, err := w.duration("ttl")
	if err != nil {
		return nil, err
	}
	hold, err := w.duration("max-hold")
	if err != nil {
		return nil, err
	}
	settle, err := w.duration("settle")
	if err != nil {
		return nil, err
	}
	var clients []redis.UniversalClient
	for address := range strings.FieldsSeq(w.Task["servers"]) {
		rdb, err := redisx.New(address)
		if err != nil {
			return nil, err
		}
		clients = append(clients, rdb)
	}
	if len(clients) > 0 {
		return redlock.New(clients, redlock.Config{TTL: ttl, MaxHold: hold, Settle: settle, Prefix: w.Task["prefix"]})
	}
	rdb, err := redisx.New(w.Task["redis"])
	if err != nil {
		return nil, err
	}
	return redislock.New(rdb, redislock.Config{TTL: ttl, MaxHold: hold, Prefix: w.Task["prefix"]})
}

// duration returns a duration of the task, or 0 if it has none of that name.
func (w *Worker) duration(name string) (time.Duration, error) {
	text := w.Task[name]
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s of the task: %w", name, err)
	}
	return d, nil
}

// persist acquires a key, and tries again if too few servers have responded in time: a busy machine is not what a lab is about.
func persist(ctx context.Context, l dlock.Locker, key string) (*dlock.Lease, error) {
	for {
		lease, err := l.Acquire(ctx, key)
		if err == nil || !backoff.Jitter(ctx, 10*time.Millisecond) {
			return lease, err
		}
	}
}
