package lab

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/redisclient"
)

const fairnessTTL = 5 * time.Second // long enough for a busy machine: no lease expires

// fairnessHold is how long the lock is held: the work of each grant.
const fairnessHold = time.Millisecond

// fairnessWorker takes a lock again and again until it has been granted often enough to all. It reports its number of grants, and the
// most grants of others for which it waited. The grants are counted in Redis, by a command that is no script.
func fairnessWorker(ctx context.Context, w *Worker) {
	grants := must(strconv.ParseInt(w.Task["grants"], 10, 64))
	rdb := must(redisclient.New(w.Task["redis"]))
	defer rdb.Close()
	take := takeBy(ctx, rdb, w.Task["mode"])
	counter := "grants:" + w.Task["mode"]
	check(rdb.SetNX(ctx, counter, 0, 0).Err()) // it is also the first connection
	w.Stops(pointReady, "")
	share, overtook := int64(0), int64(0)
	for {
		before := must(rdb.Get(ctx, counter).Int64())
		if before >= grants {
			break
		}
		release := take(ctx)
		now := must(rdb.Incr(ctx, counter).Result())
		if now <= grants {
			share++
		}
		overtook = max(overtook, min(now, grants)-before-1)
		backoff.Sleep(ctx, fairnessHold)
		check(release())
	}
	w.Stops(pointDone, "%d %d", share, overtook)
}

// takeBy returns a function that acquires the lock, and returns its release.
func takeBy(ctx context.Context, rdb redis.UniversalClient, mode string) func(context.Context) (release func() error) {
	if mode == "herd" {
		return newHerd(ctx, rdb)
	}
	locker := must(redislock.New(rdb, redislock.Config{TTL: fairnessTTL, Prefix: mode + ":"}))
	return func(ctx context.Context) func() error {
		acquire := locker.Acquire
		if mode == "poll" {
			acquire = locker.TryAcquire
		}
		lease, err := acquire(ctx, "hot")
		for pause := time.Duration(0); err != nil; lease, err = acquire(ctx, "hot") {
			pause = (backoff.Decorrelated{}).Next(pause)
			if !backoff.Sleep(ctx, pause) {
				check(ctx.Err())
			}
		}
		return func() error { return lease.Release(ctx) }
	}
}

var (
	herdTake    = redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`)
	herdRelease = redis.NewScript(`redis.call('DEL', KEYS[1]) return redis.call('PUBLISH', KEYS[1], '')`)
)

// newHerd is a textbook lock of which each release notifies all waiters, and all of them ask at once.
func newHerd(ctx context.Context, rdb redis.UniversalClient) func(context.Context) (release func() error) {
	const key = "herd"
	free := rdb.Subscribe(ctx, key)
	must(free.Receive(ctx))
	released := free.Channel()
	return func(ctx context.Context) func() error {
		for {
			err := herdTake.Run(ctx, rdb, []string{key}, "holder", fairnessTTL.Milliseconds()).Err()
			if err == nil {
				return func() error { return herdRelease.Run(ctx, rdb, []string{key}).Err() }
			}
			if err != redis.Nil { //nolint:errorlint // go-redis returns it as it is
				check(err)
			}
			select {
			case <-released:
			case <-time.After(fairnessTTL): // the message was lost
			}
		}
	}
}
