package lab

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/redisclient"
)

// pointLost is the point at which a worker is notified that its lease is lost. The value is the reason.
const pointLost = "lost"

// leaseWorker holds a lease of the key of its task until the lab lets it continue, and reports its loss at once. It stops at
// [pointReady] and [pointLocked], and reports [pointReleased].
func leaseWorker(ctx context.Context, w *Worker) {
	locker := w.locker()
	w.Stops(pointReady, "")
	lease := must(persist(ctx, locker, w.Task["key"]))
	lease.OnEnd(func(outcome error) {
		if lost, ok := errors.AsType[*dlock.LostError](outcome); ok {
			w.Says(pointLost, "%s", lost.Reason)
		}
	})
	w.Stops(pointLocked, "%d", lease.Fence().Token)
	w.Says(pointReleased, "%v", lease.Release(ctx))
}

// locker is what the lock services of labs have in common.
type locker interface {
	dlock.Locker
	dlock.MultiLocker
}

// locker returns the locker of a task: [redlock] on the addresses in "servers", or [redislock] on the address in "redis". The task
// has its ttl, and may have settle, max-hold and prefix. It ends with the process.
func (w *Worker) locker() locker {
	ttl, hold, prefix := w.duration("ttl"), w.duration("max-hold"), w.Task["prefix"]
	var clients []redis.UniversalClient
	for address := range strings.FieldsSeq(w.Task["servers"]) {
		clients = append(clients, must(redisclient.New(address)))
	}
	if len(clients) > 0 {
		return must(redlock.New(clients, redlock.Config{TTL: ttl, MaxHold: hold, Settle: w.duration("settle"), Prefix: prefix}))
	}
	return must(redislock.New(must(redisclient.New(w.Task["redis"])), redislock.Config{TTL: ttl, MaxHold: hold, Prefix: prefix}))
}

// duration returns a duration of the task, or 0 if it has none of that name.
func (w *Worker) duration(name string) time.Duration {
	if w.Task[name] == "" {
		return 0
	}
	return must(time.ParseDuration(w.Task[name]))
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
