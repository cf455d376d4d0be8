package lab

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/redisx"
)

const fairnessTTL = 5 * time.Second // long enough for a busy machine: no lease expires

// fairnessHold is how long the lock is held: the work of each grant.
const fairnessHold = time.Millisecond

// fairnessWorker takes a lock again and again until it has been granted often enough to all. It reports its number of grants, and the
// most grants of others for which it waited. The grants are counted in Redis, by a command that is no script.
func fairnessWorker(ctx context.Context, w *Worker) error {
	grants, err := strconv.ParseInt(w.Task["grants"], 10, 64)
	if err != nil {
		return err
	}
	rdb, err := redisx.New(w.Task["redis"])
	if err != nil {
		return err
	}
	defer rdb.Close()
	take, err := takeBy(ctx, rdb, w.Task["mode"])
	if err != nil {
		return err
	}
	counter := "grants:" + w.Task["mode"]
	if err := rdb.SetNX(ctx, counter, 0, 0).Err(); err != nil { // it is also the first connection
		return err
	}
	if err := w.Stops(pointReady, ""); err != nil {
		return err
	}
	share, overtook := int64(0), int64(0)
	for {
		before, err := rdb.Get(ctx, counter).Int64()
		if err != nil {
			return err
		}
		if before >= grants {
			break
		}
		release, err := take(ctx)
		if err != nil {
			return err
		}
		now, err := rdb.Incr(ctx, counter).Result()
		if err != nil {
			return err
		}
		if now <= grants {
			share++
		}
		overtook = max(overtook, min(now, grants)-before-1)
		backoff.Sleep(ctx, fairnessHold)
		if err := release(); err != nil {
			return err
		}
	}
	return w.Stops(pointDone, "%d %d", share, overtook)
}

// takeBy returns a function that acquires the lock, and returns its release.
func takeBy(ctx context.Context, rdb redis.UniversalClient, mode string) (func(context.Context) (func() error, error), error) {
	if mode == "herd" {
		return newHerd(ctx, rdb)
	}
	locker, err := redislock.New(rdb, redislock.Config{TTL: fairnessTTL, Spin: mode == "poll", Prefix: mode + ":"})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (func() error, error) {
		lease, err := persist(ctx, locker, "hot")
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(ctx) }, nil
	}, nil
}

var (
	herdTake    = redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`)
	herdRelease = redis.NewScript(`redis.call('DEL', KEYS[1]) return redis.call('PUBLISH', KEYS[1], '')`)
)

// newHerd is a textbook lock of which each release notifies all waiters, and all of them ask at once.
func newHerd(ctx context.Context, rdb redis.UniversalClient) (func(context.Context) (func() error, error), error) {
	const key = "herd"
	free := rdb.Subscribe(ctx, key)
	if _, err := free.Receive(ctx); err != nil {
		return nil, err
	}
	released := free.Channel()
	return func(ctx context.Context) (func() error, error) {
		for {
			err := herdTake.Run(ctx, rdb, []string{key}, "holder", fairnessTTL.Milliseconds()).Err()
			if err == nil {
				return func() error { return herdRelease.Run(ctx, rdb, []string{key}).Err() }, nil
			}
			if err != redis.Nil { //nolint:errorlint // go-redis returns it as it is
				return nil, fmt.Errorf("take the lock: %w", err)
			}
			select {
			case <-released:
			case <-time.After(fairnessTTL): // the message was lost
			}
		}
	}, nil
}
