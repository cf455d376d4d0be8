package redlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// The tokens grow from one majority to the next, although the servers do not agree on
// the time, nor on the last one.
func TestFenceGrowsFromMajorityToMajority(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		l, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		const ahead = 9000000000000001 // beyond the clocks
		if err := client(t, s[0].URL()).Set(t.Context(), fenceKey(key), "9000000000000001:", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		pause := func(down ...int) {
			s.thaw(t)
			for _, i := range down {
				harm(t, s[i].Pause)
			}
		}
		var last uint64
		for round, down := range [][]int{{3, 4}, {0, 1}, {0, 2}, {1, 4}, {2, 3}} {
			pause(down...)
			// Servers that were silent get one call, and vote again when it is answered.
			var lease *dlock.Lease
			waitFor(t, "a majority", func() (ok bool) {
				var err error
				lease, err = l.TryAcquire(t.Context(), key)
				return err == nil
			})
			if token := lease.Fence().Token; token <= last || token <= ahead {
				t.Errorf("round %d without %v: token %d follows %d", round, down, token, last)
			}
			last = lease.Fence().Token
			if err := lease.Release(t.Context()); err != nil && errors.Is(err, dlock.ErrLost) {
				t.Errorf("round %d: Release = %v", round, err)
			}
		}
		pause()
	})
}

// An attempt that is refused leaves nothing behind, on no server, when it returns.
func TestRefusedAttemptLeavesNothing(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		l, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		for _, server := range s[:3] { // another one has the majority
			if err := client(t, server.URL()).Set(t.Context(), lockKey(key), "other:1:1", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrHeld) {
			t.Fatalf("TryAcquire = %v, want ErrHeld", err)
		}
		waitFor(t, "the rest", func() bool { // what was granted after the decision is given back in the background
			for _, server := range s[3:] {
				if client(t, server.URL()).Exists(t.Context(), lockKey(key)).Val() != 0 {
					return false
				}
			}
			return true
		})
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

func TestReseed(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		l, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		const high = 8000000000000000
		if err := errors.Join(l.Reseed(t.Context(), key, high), l.Reseed(t.Context(), key, 1)); err != nil {
			t.Fatal(err)
		}
		lease := take(t, l, key)
		defer lease.Release(t.Context())
		if token := lease.Fence().Token; token <= high {
			t.Errorf("token = %d, want more than %d", token, uint64(high))
		}
		if err := l.Reseed(t.Context(), key, 1<<53); err == nil {
			t.Error("Reseed accepts a token that a script cannot count")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		open := func(addr string) redis.UniversalClient { return client(t, "redis://"+addr) }
		careless := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:4", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer careless.Close()
		cluster, err := redisclient.New("redis+cluster://127.0.0.1:5")
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		a, b, c := open("127.0.0.1:1"), open("127.0.0.1:2"), open("127.0.0.1:3")
		for name, all := range map[string][]redis.UniversalClient{
			"two servers":     {a, b},
			"one named twice": {a, b, open("127.0.0.1:1")},
			"default options": {a, b, careless},
			"a cluster":       {a, b, cluster},
		} {
			if _, err := redlock.New(all, redlock.Config{}); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		for name, cfg := range map[string]redlock.Config{"TTL": {TTL: time.Microsecond}, "prefix": {Prefix: "a{b}"}} {
			if _, err := redlock.New([]redis.UniversalClient{a, b, c}, cfg); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		if _, err := redlock.New([]redis.UniversalClient{a, b, c}, redlock.Config{}); err != nil {
			t.Error(err)
		}
	})
}

// A value without an end is no reason to ask again at once.
func TestForeignValueIsNotPolledInATightLoop(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		text, err := os.ReadFile("take.lua")
		if err != nil {
			t.Fatal(err)
		}
		rdb, key := client(t, testbedtest.Redis(t)), rand.Text()
		if err := rdb.MSet(t.Context(), key, "maintenance", key+":known", "1").Err(); err != nil {
			t.Fatal(err)
		}
		keys := []string{key, key + ":fence", key + ":known", key + ":settling"}
		left, err := redis.NewScript(string(text)).Run(t.Context(), rdb, keys, "a", 3000, 6000, 0).Int()
		if err != nil || left != 3000 {
			t.Errorf("take = %d, %v, want a TTL of 3000", left, err)
		}
	})
}
