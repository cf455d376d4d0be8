package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// lossy loses scripts with so many arguments on their way to the server, until it is healed.
func lossy(args int, healed *atomic.Bool) testbedtest.RoundTrips {
	return func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
		if len(cmds[0].Args()) == args && !healed.Load() {
			return testbedtest.Lose(cmds, errors.New("lost on its way"))
		}
		return send(ctx, cmds)
	}
}

// A lease whose token a majority does not know is none: the next one could have a
// lower token.
func TestNoLeaseBeforeAMajorityHasTheToken(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		const raise = 3 + 2 + 3 // evalsha with two keys and three arguments
		all := make([]redis.UniversalClient, len(s))
		for i, server := range s {
			all[i] = client(t, server.URL())
			last := fmt.Sprintf("900000000000000%d:", i) // no two of them propose the same token
			if err := all[i].Set(t.Context(), fenceKey("k"), last, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			all[i].AddHook(lossy(raise, new(atomic.Bool)))
		}
		l, err := redlock.New(all, redlock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		if lease, err := l.TryAcquire(t.Context(), "k"); err == nil {
			t.Errorf("a lease with %+v", lease.Fence())
			lease.Release(t.Context())
		}
		testbedtest.Eventually(t, "the key", func() bool {
			lease, err := locker(t, s.urls(), redlock.Config{TTL: ttl}).TryAcquire(t.Context(), "k")
			return err == nil && lease.Release(t.Context()) == nil
		})
	})
}

// A release that did not get through is made up for long before the TTL ends.
func TestFailedReleaseIsRetried(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		const release = 3 + 2 + 2 // evalsha with two keys and two arguments
		var healed atomic.Bool
		healed.Store(true)
		all := make([]redis.UniversalClient, len(s))
		for i, server := range s {
			all[i] = client(t, server.URL())
			all[i].AddHook(lossy(release, &healed))
		}
		l, err := redlock.New(all, redlock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		lease := take(t, l, "k")
		healed.Store(false)
		start := time.Now()
		if err := lease.Release(t.Context()); err == nil || errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v, want the error of the network", err)
		}
		healed.Store(true)
		take(t, locker(t, s.urls(), redlock.Config{TTL: ttl}), "k").Release(t.Context())
		if d := time.Since(start); d > 2*ttl/3 {
			t.Errorf("the key was free only after %v; the TTL is %v", d, ttl)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestValidityCountsFromBeforeTheRequest holds back the answers to an acquisition and then
// loses every renewal: the servers have counted from the start.
func TestValidityCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		var cut atomic.Bool
		all := make([]redis.UniversalClient, len(s))
		for i, server := range s {
			all[i] = client(t, server.URL())
			if err := all[i].Ping(t.Context()).Err(); err != nil { // connected: a greeting that is late would leave a call no time
				t.Fatal(err)
			}
			all[i].AddHook(testbedtest.LateReplies(ttl/3, &cut))
		}
		l, err := redlock.New(all, redlock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		lease, err := l.TryAcquire(t.Context(), "k") // two rounds
		if err != nil {
			t.Fatal(err)
		}
		cut.Store(true)
		select {
		case <-lease.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the lease continues")
		}
		if d := time.Since(start); d > 7*ttl/6 { // counted from the second round it is longer
			t.Errorf("the lease ended %v after the request was sent, its TTL is %v", d, ttl)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// lateTake times a take out, and delivers it after the next release.
type lateTake struct {
	take, release int // how many arguments they have
	lost          atomic.Bool
	late          atomic.Pointer[[]redis.Cmder]
	delivered     chan struct{}
}

func (h *lateTake) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	switch n := len(cmds[0].Args()); {
	case n == h.take && h.lost.CompareAndSwap(false, true):
		late := testbedtest.Late(ctx, cmds)
		h.late.Store(&late)
		return testbedtest.Lose(cmds, os.ErrDeadlineExceeded)
	case n == h.release:
		err := send(ctx, cmds)
		if late := h.late.Swap(nil); late != nil {
			defer close(h.delivered)
			return errors.Join(err, send(ctx, *late))
		}
		return err
	}
	return send(ctx, cmds)
}

// A take with an unknown vote arrives after the release found nothing. The server is asked again, and not blocked for
// a TTL.
func TestLateTakeIsRolledBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		take(t, locker(t, s.urls(), redlock.Config{TTL: ttl}), "k").Release(t.Context()) // the servers know the scripts
		all := make([]redis.UniversalClient, len(s))
		for i, server := range s {
			all[i] = client(t, server.URL())
		}
		h := &lateTake{take: 3 + 4 + 4, release: 3 + 2 + 2, delivered: make(chan struct{})}
		all[0].AddHook(testbedtest.RoundTrips(h.roundTrip))
		l, err := redlock.New(all, redlock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		take(t, l, "k").Release(t.Context())
		select {
		case <-h.delivered:
		case <-time.After(10 * ttl):
			t.Fatal("the take was not delivered")
		}
		start := time.Now()
		testbedtest.Eventually(t, "the lock of the server", func() bool {
			return client(t, s[0].URL()).Exists(t.Context(), lockKey("k")).Val() == 0
		})
		if d := time.Since(start); d > 2*ttl/3 {
			t.Errorf("the server was free only after %v; the TTL is %v", d, ttl)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that was paused executes a take after its lease has been lost. It is asked to release that, and not blocked for a TTL.
func TestLateTakeOfALostLease(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		l := locker(t, s.urls(), redlock.Config{TTL: ttl})
		take(t, l, "k").Release(t.Context()) // the servers know the scripts
		late := client(t, s[0].URL())
		var before string
		testbedtest.Eventually(t, "the first take of this server, which the other two did not wait for", func() bool {
			var err error
			before, err = late.Get(t.Context(), fenceKey("k")).Result()
			return err == nil
		})
		if err := s[0].Pause(); err != nil {
			t.Fatal(err)
		}
		lease := take(t, l, "k")
		for _, server := range s[1:] {
			if err := client(t, server.URL()).Del(t.Context(), lockKey("k")).Err(); err != nil {
				t.Fatal(err)
			}
		}
		<-lease.Done()
		if err := s[0].Resume(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		testbedtest.Eventually(t, "the take", func() bool {
			last, err := late.Get(t.Context(), fenceKey("k")).Result()
			return err == nil && last != before
		})
		testbedtest.Eventually(t, "the lock of the server", func() bool { return late.Exists(t.Context(), lockKey("k")).Val() == 0 })
		if d := time.Since(start); d > 2*ttl/3 {
			t.Errorf("the server was free only after %v; the TTL is %v", d, ttl)
		}
	})
}
