package redistokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// A waiter that had collected a token before the semaphore was lost must not count it afterwards.
func TestCollectedTokensAreLostWithTheSemaphore(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		key := rand.Text()
		url := testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
		rdb := redistest.Client(t, url)
		cfg := redistokens.Config{Permits: 2, TTL: ttl}
		collector, holder := redistest.Tokens(t, redistest.Client(t, url), cfg), redistest.Tokens(t, rdb, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 20*ttl)
		defer cancel()
		taken := make(chan *dlock.Lease, 1)
		collects := func(what string) { // this server has no other waiter
			t.Helper()
			testbedtest.Eventually(t, what, func() bool {
				if len(taken) > 0 {
					t.Fatal("the collector has two permits, and another client one")
				}
				clients, err := rdb.InfoMap(ctx, "clients").Result()
				if err != nil || clients["Clients"]["blocked_clients"] != "1" {
					return false
				}
				lists, err := rdb.Keys(ctx, redistest.SemaphoreKey(key)+":held:*").Result()
				return err == nil && slices.ContainsFunc(lists, func(list string) bool {
					held, err := rdb.LRange(ctx, list, 0, -1).Result()
					return err == nil && len(held) == 2 && slices.Contains(held, "turn")
				})
			})
		}
		first, err := holder.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			lease, err := collector.Acquire(ctx, key, 2)
			if err != nil {
				t.Error(err)
			}
			taken <- lease
		}()
		collects("one token and the turn")

		newcomer := redistest.Tokens(t, redistest.Client(t, url), cfg) // of this key it remembers nothing, and so waits for nothing
		other, err := newcomer.TryAcquire(ctx, rand.Text(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Release(ctx)
		if err := holder.Remove(ctx, key); err != nil {
			t.Fatal(err)
		}
		held, err := newcomer.TryAcquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Release(ctx); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("the earlier lease: %v, want a loss", err)
		}
		collects("the other token and the turn")
		if err := held.Release(ctx); err != nil {
			t.Fatal(err)
		}
		lease := <-taken
		if lease == nil {
			return
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A failover loses the lease of a token, and the same process gets the token once more. The first lease is over at its next renewal,
// or when it is released, and the second one is not.
func TestTokenThatIsGrantedTwice(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		s := redistest.Tokens(t, rdb, redistokens.Config{Permits: 2, TTL: ttl})
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		for _, releases := range []bool{false, true} {
			key := rand.Text()
			first, err := s.Acquire(ctx, key, 1)
			if err != nil {
				t.Fatal(err)
			}
			lists, err := rdb.Keys(ctx, redistest.SemaphoreKey(key)+":held:*").Result()
			if err != nil || len(lists) != 1 {
				t.Fatalf("lists %v, %v", lists, err)
			}
			if err := rdb.LMove(ctx, lists[0], redistest.SemaphoreKey(key)+":free", "LEFT", "LEFT").Err(); err != nil { // as the replica has it
				t.Fatal(err)
			}
			second, err := s.Acquire(ctx, key, 1)
			if err != nil {
				t.Fatal(err)
			}
			if releases {
				if err := first.Release(ctx); !errors.Is(err, dlock.ErrLost) {
					t.Errorf("release of the first lease: %v, want a loss", err)
				}
			} else {
				testbedtest.Eventually(t, "the loss of the first lease", func() bool { return errors.Is(first.Err(), dlock.ErrLost) })
			}
			if err := second.Release(ctx); err != nil {
				t.Errorf("release of the second lease: %v", err)
			}
			testbedtest.Eventually(t, "two free tokens", func() bool { return free(t, rdb, key) == 2 })
		}
	})
}

// A token arrives for a waiter although the semaphore was created again meanwhile, and the waiter is cut off. Others get the
// token when the waiter has expired.
func TestTokenThatArrivesAfterALoss(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		url := testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
		rdb := redistest.Client(t, url)
		ctx, cancel := context.WithTimeout(t.Context(), 20*ttl)
		defer cancel()
		cfg := redistokens.Config{Permits: 2, TTL: ttl}
		first, newcomer := redistest.Tokens(t, rdb, cfg), redistest.Tokens(t, redistest.Client(t, url), cfg)
		arrives := func(key string) bool { // not if the waiter stops waiting at the wrong moment, to begin again
			through, link := redistest.Proxied(t, url)
			waiter := redistest.Tokens(t, through, redistokens.Config{Permits: 2, TTL: ttl, Blocking: rdb})
			defer link.Heal()
			if _, err := first.Acquire(ctx, key, 2); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := waiter.Acquire(ctx, key, 1)
				failed <- err
			}()
			testbedtest.Eventually(t, "a client that waits", func() bool {
				clients, err := rdb.InfoMap(ctx, "clients").Result()
				return err == nil && clients["Clients"]["blocked_clients"] == "1"
			})
			link.Cut()
			if err := first.Remove(ctx, key); err != nil {
				t.Fatal(err)
			}
			if _, err := newcomer.TryAcquire(ctx, key, 1); err != nil {
				t.Fatal(err)
			}
			if err := <-failed; err == nil {
				t.Fatal("the waiter was not cut off")
			}
			arrived := free(t, rdb, key) == 0
			if arrived {
				if _, err := newcomer.Acquire(ctx, key, 1); err != nil {
					t.Errorf("the token that arrived: %v", err)
				}
			}
			return arrived
		}
		for !arrives(rand.Text()) {
			if ctx.Err() != nil {
				t.Fatal("no token arrived")
			}
		}
	})
}
