package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Keys that are free are taken by one request, and released by one.
func TestAcquireAllIsOneRequest(t *testing.T) {
	t.Parallel()
	oneRequest(t, (*redislock.Locker).AcquireAll)
}

// Keys are asked for by one request.
func TestTryAcquireEachIsOneRequest(t *testing.T) {
	t.Parallel()
	oneRequest(t, (*redislock.Locker).TryAcquireEach)
}

func oneRequest(t *testing.T, take func(*redislock.Locker, context.Context, []string) (*dlock.Lease, error)) {
	t.Helper()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		load(t, locker(t, rdb))
		tag := "{" + rand.Text() + "}"
		keys := []string{tag + ":a", tag + ":b", "order:" + tag, rand.Text()}
		l := locker(t, rdb)
		warm, err := take(l, t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		warm.Release(t.Context())
		var requests atomic.Int32
		rdb.AddHook(spy(func(redis.Cmder) { requests.Add(1) }))
		for range 50 { // a call that is sent before the others are ready shows now and then
			requests.Store(0)
			lease, err := take(l, t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			lease.Release(t.Context())
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests for the keys and their release, want 2", n)
			}
		}
		if n := rdb.Exists(t.Context(), "shop:lock:"+tag+":lock:"+keys[0], lockKey(keys[3])).Val(); n != 0 {
			t.Errorf("%d locks are left", n)
		}
	})
}

// A key that Redis refuses is in the error, and the others are in the lease.
func TestTryAcquireEachWithARefusedKey(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, other := locker(t, rdb), locker(t, rdb)
		a, b, c := "a"+rand.Text(), "b"+rand.Text(), "c"+rand.Text()
		if err := rdb.LPush(t.Context(), lockKey(b), "not a lock").Err(); err != nil {
			t.Fatal(err)
		}
		lease, err := l.TryAcquireEach(t.Context(), []string{a, b, c})
		if err == nil || errors.Is(err, dlock.ErrUncertain) || !strings.Contains(err.Error(), b) || strings.Contains(err.Error(), a) {
			t.Errorf("error = %v, want the refusal of %q", err, b)
		}
		if lease == nil || !slices.Equal(lease.Keys(), []string{a, c}) {
			t.Fatalf("lease of %v, want the other keys", lease)
		}
		if _, err := other.TryAcquire(t.Context(), a); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v, want ErrHeld", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := l.AcquireAll(t.Context(), []string{a, b, c}); err == nil {
			t.Error("AcquireAll has a key that was refused")
		}
		for _, key := range []string{a, c} {
			lease, err := other.TryAcquire(t.Context(), key)
			if err != nil {
				t.Errorf("TryAcquire(%q) = %v after a failed AcquireAll", key, err)
				continue
			}
			lease.Release(t.Context())
		}
	})
}

// In a cluster each master gets one request, whatever the slots of the keys are.
func TestTryAcquireEachOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	group := testbedtest.StartCluster(t)
	testbedtest.Steady(t, func(t testing.TB) {
		l := locker(t, redistest.Watched(t, redistest.Client(t, redistest.ClusterURL(group))))
		keys := make([]string, 64)
		for i := range keys {
			keys[i] = rand.Text()
		}
		slices.Sort(keys)
		held, err := l.TryAcquire(t.Context(), keys[0])
		if err != nil {
			t.Fatal(err)
		}
		lease, err := l.TryAcquireEach(t.Context(), keys)
		if err != nil || lease == nil || !slices.Equal(lease.Keys(), keys[1:]) {
			t.Fatalf("TryAcquireEach = %v, %v, want all keys but the first", lease, err)
		}
		<-time.After(3 * ttl / 2)
		if err := errors.Join(lease.Release(t.Context()), held.Release(t.Context())); err != nil {
			t.Error(err)
		}
		all, err := l.AcquireAll(t.Context(), keys)
		if err != nil || !slices.Equal(all.Keys(), keys) {
			t.Fatalf("AcquireAll = %v, %v", all, err)
		}
		all.Release(t.Context())
	})
}

// A key with a hash tag is not mistaken for one without.
func TestKeysWithAndWithoutAHashTag(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, tag := locker(t, redistest.Client(t, testbedtest.Redis(t))), rand.Text()
		for _, key := range []string{tag, "{" + tag + "}", "{" + tag + "}:fence", tag + "{" + tag + "}", "{" + tag, "{" + tag + "}{x}"} {
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Errorf("TryAcquire(%q) = %v", key, err)
				continue
			}
			t.Cleanup(func() { lease.Release(t.Context()) })
		}
	})
}

func TestRaiseCounterLiftsLaterTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, key := locker(t, rdb), rand.Text()
		const accepted = 8_000_000_000_000_000 // by a resource, from a clock far ahead
		for _, atLeast := range []uint64{accepted, 5} {
			if err := l.RaiseCounter(t.Context(), key, atLeast); err != nil {
				t.Fatal(err)
			}
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if got := lease.Fence().Token; got <= accepted {
				t.Errorf("token = %d, want more than %d", got, uint64(accepted))
			}
			lease.Release(t.Context())
		}
		if err := l.RaiseCounter(t.Context(), key, 1<<53); err == nil {
			t.Error("a token is accepted that a script cannot count")
		}
	})
}
