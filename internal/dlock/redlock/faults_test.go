package redlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// freeze stops the first n servers, until the test ends.
func (s servers) freeze(t testing.TB, n int) {
	t.Helper()
	for _, server := range s[:n] {
		harm(t, server.Pause)
	}
}

func (s servers) thaw(t testing.TB) {
	t.Helper()
	for _, server := range s {
		harm(t, server.Resume)
	}
}

func take(t testing.TB, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	for err != nil && ctx.Err() == nil { // a busy machine keeps a majority from answering in time
		<-time.After(ttl / 100)
		lease, err = l.Acquire(ctx, key)
	}
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return lease
}

// With a minority frozen nothing takes longer. An implementation that waits for all servers would need at least one
// call more for each pair.
func TestFrozenMinorityCostsNoTime(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const pairs = 20
		s := ready(t, 5)
		l := locker(t, s.urls(), redlock.Config{TTL: ttl})
		for frozen := 1; frozen <= 2; frozen++ {
			s.freeze(t, frozen)
			start, failed := time.Now(), 0
			for range pairs {
				lease := take(t, l, "k")
				if err := lease.Release(t.Context()); errors.Is(err, dlock.ErrLost) {
					t.Errorf("Release: %v", err)
				} else if err != nil { // on a busy machine another server may be late, too; that costs time
					t.Log(err)
					failed++
				}
			}
			if failed > pairs/4 {
				t.Errorf("%d frozen: %d of %d releases failed", frozen, failed, pairs)
			}
			if d := time.Since(start); d > pairs*callTimeout/4 {
				t.Errorf("%d frozen: %d pairs took %v, a call may take %v", frozen, pairs, d, callTimeout)
			}
		}
		s.thaw(t)
		take(t, l, "k").Release(t.Context())
	})
}

// callTimeout is what bounds a call with ttl.
const callTimeout = ttl / 6

// Without a majority every call ends in time, holders too; afterwards all is as before.
func TestFrozenMajorityIsUnavailableInTime(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		l := locker(t, s.urls(), redlock.Config{TTL: ttl})
		all := clients(t, s.urls())
		patient := lockerOn(t, all, redlock.Config{TTL: 10 * ttl}) // it waits for that long without a majority
		held, kept := take(t, l, "held"), take(t, l, "kept")
		waiter := make(chan error, 1)
		go func() {
			lease, err := patient.Acquire(t.Context(), "kept")
			if err == nil {
				if err = lease.Release(t.Context()); !errors.Is(err, dlock.ErrLost) {
					err = nil // servers that have just gone on may be late
				}
			}
			waiter <- err
		}()
		testbedtest.Eventually(t, "the second attempt of the waiter", func() bool { // no majority for the first one is an error
			return slices.ContainsFunc(all, func(rdb redis.UniversalClient) bool {
				stats := rdb.PoolStats()
				return stats.Hits+stats.Misses > 2 // a first attempt whose script has to be loaded makes two calls
			})
		})
		s.freeze(t, 3)
		inTime := func(what string, want error, f func() error) {
			start := time.Now()
			if err := f(); err == nil || want != nil && !errors.Is(err, want) || errors.Is(err, dlock.ErrHeld) || errors.Is(err, dlock.ErrLost) {
				t.Errorf("%s = %v, want %v", what, err, want)
			}
			if d := time.Since(start); d > 4*callTimeout {
				t.Errorf("%s took %v, a call may take %v", what, d, callTimeout)
			}
		}
		inTime("TryAcquire", dlock.ErrUncertain, func() error { _, err := l.TryAcquire(t.Context(), "k"); return err })
		inTime("Acquire", nil, func() error { _, err := l.Acquire(t.Context(), "k"); return err })
		inTime("Release", nil, func() error { return held.Release(t.Context()) })
		inTime("Inspect", nil, func() error { _, err := l.Inspect(t.Context(), "k"); return err })
		select {
		case <-kept.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the holder is not notified of the loss")
		}
		s.thaw(t)
		select {
		case err := <-waiter:
			if err != nil {
				t.Errorf("the waiter: %v", err)
			}
		case <-time.After(5 * ttl):
			t.Fatal("the waiter waits for what nobody holds")
		}
		testbedtest.Eventually(t, "the locks", func() bool {
			for _, key := range []string{"k", "held", "kept"} {
				lease, err := l.TryAcquire(t.Context(), key)
				if err != nil {
					return false
				}
				lease.Release(t.Context())
			}
			return true
		})
	})
}

// A key is held on three servers of five, and one of them restarts empty. Its vote
// must not make a majority with the two others while the holder considers its lease valid.
func TestServerThatLosesItsDataHasNoVote(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		l, other, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		for _, server := range s[3:] {
			harm(t, server.Kill)
		}
		lease := take(t, l, key)
		for _, server := range s[3:] {
			harm(t, func() error { return server.Restart(t.Context()) })
			settle(t, client(t, server.URL()))
		}
		harm(t, s[2].Kill)
		harm(t, func() error { return s[2].Restart(t.Context()) })
		for end := time.Now().Add(2 * ttl / 3); time.Now().Before(end); {
			next, err := other.TryAcquire(t.Context(), key)
			if err == nil {
				next.Release(t.Context())
				if lease.Err() == nil {
					t.Fatal("a second holder while the first considers its lease valid")
				}
				return
			}
			<-time.After(ttl / 30)
		}
		testbedtest.Eventually(t, "the next holder", func() bool {
			next, err := other.TryAcquire(t.Context(), key)
			if err != nil {
				return false
			}
			defer next.Release(t.Context())
			if lease.Err() == nil {
				t.Fatal("a second holder while the first considers its lease valid")
			}
			if next.Fence().Token <= lease.Fence().Token {
				testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), lease.Fence())
			}
			return true
		})
	})
}

// A server that is silent costs one call at a time: neither connections nor goroutines
// pile up before it.
func TestSilentServerCostsOneCallAtATime(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		all := clients(t, s.urls())
		l, err := redlock.New(all, redlock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		s.freeze(t, 1)
		take(t, l, "k").Release(t.Context())
		<-time.After(2 * callTimeout) // the first calls have timed out
		start := time.Now()
		pairs := 0
		for ; time.Since(start) < 2*callTimeout; pairs++ {
			take(t, l, "k").Release(t.Context())
		}
		stats := all[0].PoolStats()
		if calls := stats.Hits + stats.Misses; calls > 10 || pairs < 10 {
			t.Errorf("%d calls to the silent server in %d pairs", calls, pairs)
		}
		s.thaw(t)
		testbedtest.Eventually(t, "its vote", func() bool {
			take(t, l, "k").Release(t.Context())
			return all[0].PoolStats().Hits > stats.Hits+10
		})
	})
}

// Before the first call has timed out, a server that is paused gets few calls more,
// however many callers there are.
func TestPausedServerGetsFewCalls(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const callers, most = 200, 8
		s := ready(t, 3)
		all := clients(t, s.urls())
		l, err := redlock.New(all, redlock.Config{TTL: 10 * ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		s.freeze(t, 1)
		before, start := all[0].PoolStats(), time.Now()
		var together sync.WaitGroup
		var served atomic.Int64
		for range callers {
			together.Go(func() {
				lease, err := l.Acquire(t.Context(), rand.Text())
				if err != nil { // on a busy machine another server may be late, too
					t.Log(err)
					return
				}
				served.Add(1)
				lease.Release(t.Context())
			})
		}
		together.Wait()
		stats := all[0].PoolStats()
		timeouts := uint32(time.Since(start) / callTimeout) // one call is sent after each
		if calls := stats.Hits + stats.Misses - before.Hits - before.Misses; calls > 2*most+timeouts || calls == 0 {
			t.Errorf("%d calls to the paused server by %d callers", calls, callers)
		}
		if served.Load() == 0 {
			take(t, l, "k").Release(t.Context()) // by the others, which were late for all
		}
		s.thaw(t)
	})
}

// New servers grant nothing for as long as a lock that they may have forgotten can live.
func TestNewServersSettle(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := start(t, 3, testbed.RedisConfig{})
		begin := time.Now()
		l := locker(t, s.urls(), redlock.Config{TTL: ttl})
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v, want ErrHeld", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		lease, err := l.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		lease.Release(t.Context())
		if d := time.Since(begin); d < ttl {
			t.Errorf("granted after %v, want %v at least", d, ttl)
		}
		take(t, l, "other").Release(t.Context()) // at once
		eager := locker(t, start(t, 3, testbed.RedisConfig{}).urls(), redlock.Config{TTL: ttl, Settle: -1})
		take(t, eager, "k").Release(t.Context())
	})
}
