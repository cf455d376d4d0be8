package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// stage is a database and a Redis that nobody else uses.
type stage struct {
	database, redis string
	flags           []string // that make an instance use both
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{database: testbedtest.Database(t), redis: ownRedis(t)}
	s.flags = []string{"--database", s.database, "--redis", s.redis}
	return s
}

// three starts three instances as processes.
func (s stage) three(t *testing.T, more ...string) (all [3]*instance) {
	t.Helper()
	for i := range all {
		args := append(append([]string{"--instance", fmt.Sprint("shop-", i+1)}, s.flags...), more...)
		all[i] = start(t, args...)
	}
	return all
}

// locks returns the locks of the instances, for a test that holds or inspects them itself. Its leases are longer than
// those of the instances, so it keeps them on a machine that was paused.
func (s stage) locks(t *testing.T) *redislock.Locker {
	t.Helper()
	rdb, err := redisx.New(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := redislock.New(rdb, redislock.Config{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(locks.Close(ctx), rdb.Close()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// hold takes a lock from the instances until the test releases it.
func hold(t *testing.T, locks *redislock.Locker, key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := locks.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// free gives a lock back.
func free(t *testing.T, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// queued waits until so many stand in the queue of a lock.
func queued(t *testing.T, locks *redislock.Locker, key string, n int) {
	t.Helper()
	testbedtest.Eventually(t, fmt.Sprint(n, " wait for ", key), func() bool { return inspect(t, locks, key).Waiters == n })
}

// inspect returns the state of a lock.
func inspect(t *testing.T, locks *redislock.Locker, key string) (state dlock.State) {
	t.Helper()
	surely(t, func() (err error) {
		state, err = locks.Inspect(t.Context(), key)
		return err
	})
	return state
}

// surely does what can be repeated until it succeeds: where the machine is paused, an answer may come too late.
func surely(t *testing.T, do func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// sqliteURL returns a new database.
func sqliteURL(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
}

// ownRedis returns a Redis that wakes nobody for the timers of another test.
func ownRedis(t *testing.T) string {
	t.Helper()
	return testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
}

// The times that docs/reference/guarantees.md promises.
const (
	leaseTTL       = 2 * time.Second
	sessionTimeout = 8 * time.Second
	permitsTTL     = 3 * time.Second
	drainWait      = 2 * time.Second
	stopTimeout    = 12 * time.Second
)
