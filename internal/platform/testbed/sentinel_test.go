package testbed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// keep writes and reads through a client for a whole group, which may be in the
// middle of a failover.
func keep(t testing.TB, c redis.UniversalClient, key, value string) {
	t.Helper()
	testbedtest.Eventually(t, "a write of "+key, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if c.Set(ctx, key, value, 0).Err() != nil {
			return false
		}
		got, err := c.Get(ctx, key).Result()
		return err == nil && got == value
	})
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := testbedtest.StartSentinel(t, testbed.SentinelConfig{})
		c := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: s.MasterName(), SentinelAddrs: s.SentinelAddrs(), ContextTimeoutEnabled: true,
		})
		defer c.Close()
		keep(t, c, "k", "before")

		for _, value := range []string{"after", "and back"} { // What has been restarted must be able to take over.
			old, err := s.Master(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			next, err := s.Replica(t.Context())
			if err != nil || next == old {
				t.Fatalf("replica %v, master %v, %v", next.Addr(), old.Addr(), err)
			}
			start := time.Now()
			if err := old.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.WaitForFailover(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			t.Logf("failover after %v", time.Since(start).Round(time.Millisecond))
			if master, err := s.Master(t.Context()); master != next || err != nil {
				t.Errorf("the master is %v, %v, want the former replica", master, err)
			}
			keep(t, c, "k", value)

			start = time.Now()
			if err := old.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("ready again after %v", time.Since(start).Round(time.Millisecond))
			if got, err := newClient(t, old.Addr()).Get(t.Context(), "k").Result(); got != value || err != nil {
				t.Errorf("the old master has %q, %v: it does not follow the new one", got, err)
			}
			if master, err := s.Master(t.Context()); master != next || err != nil {
				t.Errorf("the master is %v, %v: it was replaced once more, though it ran", master, err)
			}
		}
	})
}

func TestSentinelReplacesAPausedMaster(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := testbedtest.StartSentinel(t, testbed.SentinelConfig{DownAfter: 500 * time.Millisecond})
		old, err := s.Master(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := old.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitForFailover(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := old.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A minority of sentinels must not be enough, or the quorum would mean nothing.
func TestSentinelNeedsItsQuorum(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := testbedtest.StartSentinel(t, testbed.SentinelConfig{DownAfter: 500 * time.Millisecond})
		old, err := s.Master(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		watchers := s.Sentinels()
		if err := errors.Join(watchers[0].Kill(), watchers[1].Kill(), old.Kill()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := s.WaitForFailover(ctx, old); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("one sentinel of three: WaitForFailover = %v, want the end of the context", err)
		}
		if err := errors.Join(watchers[0].Restart(t.Context()), watchers[1].Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitForFailover(t.Context(), old); err != nil {
			t.Error(err)
		}
	})
}
