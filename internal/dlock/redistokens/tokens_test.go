package redistokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// process returns the semaphores as the process of that name has them.
func process(t testing.TB, rdb redis.UniversalClient, permits int, name string) *redistokens.Tokens {
	t.Helper()
	s, err := redistokens.New(rdb, redistokens.Config{Permits: permits, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take takes a token that is free.
func take(t testing.TB, s *redistokens.Tokens, key string) *redistokens.Permit {
	t.Helper()
	permit, err := s.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return permit
}

// free returns how many tokens are in the list.
func free(t testing.TB, rdb redis.UniversalClient, key string) int {
	t.Helper()
	n, err := rdb.LLen(t.Context(), "shop:tokens:{"+key+"}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func wantFree(t testing.TB, rdb redis.UniversalClient, key string, want int, when string) {
	t.Helper()
	if n := free(t, rdb, key); n != want {
		t.Errorf("%d tokens are free %s, want %d", n, when, want)
	}
}

func TestNeverMoreThanTheTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		const permits, goroutines, rounds = 3, 4, 50
		var (
			key        = rand.Text()
			wg         sync.WaitGroup
			held, most atomic.Int64
		)
		for _, name := range []string{"a", "b"} {
			s := process(t, rdb, permits, name)
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						permit, err := s.Acquire(t.Context(), key)
						if err != nil {
							t.Error(err)
							return
						}
						now := held.Add(1)
						for last := most.Load(); now > last && !most.CompareAndSwap(last, now); {
							last = most.Load()
						}
						held.Add(-1)
						if err := permit.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if n := most.Load(); n > permits {
			t.Errorf("%d tokens were held at once, there are %d", n, permits)
		}
		wantFree(t, rdb, key, permits, "at rest")
	})
}

func TestTryAcquireTakesWhatIsFree(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		a, b := process(t, rdb, 2, "a"), process(t, rdb, 5, "b") // a makes the tokens
		first := take(t, a, key)
		take(t, b, key)
		if _, err := b.TryAcquire(t.Context(), key); !errors.Is(err, redistokens.ErrNoToken) {
			t.Errorf("the third of two tokens: %v", err)
		}
		for range 2 { // the second call does nothing
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := a.ReleaseAll(t.Context(), key); err != nil {
			t.Error(err)
		}
		wantFree(t, rdb, key, 1, "after one release, and ReleaseAll of a process that holds none")
	})
}

func TestReleaseWakesAWaiter(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{}) // whose blocked clients are those of this test
		rdb, key := redistest.Client(t, server.URL()), rand.Text()
		s := process(t, rdb, 1, "a")
		var took []time.Duration
		for range 5 {
			held, end := take(t, s, key), make(chan time.Time)
			go func() {
				next, err := s.Acquire(t.Context(), key)
				at := time.Now()
				if err != nil {
					t.Error(err)
				} else if err := next.Release(t.Context()); err != nil {
					t.Error(err)
				}
				end <- at
			}()
			testbedtest.Eventually(t, "the waiter", func() bool {
				return rdb.InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients") != "0"
			})
			start := time.Now()
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			took = append(took, (<-end).Sub(start))
		}
		quick := 0
		for _, d := range took {
			if d < 400*time.Millisecond {
				quick++
			}
		}
		if quick < 3 {
			t.Errorf("the waiters had the token after %v, as if nobody had woken them", took)
		}
	})
}

// A waiter that gives up takes no token with it.
func TestCancelledWaiterLosesNoToken(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		s := process(t, rdb, 1, "a")
		held := take(t, s, key)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Acquire(ctx, key)
			ended <- err
		}()
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Acquire = %v, want the end of its context", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Acquire waits on, although its context has ended")
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantFree(t, rdb, key, 1, "after the wait")
	})
}

// A restarted process returns what its predecessor held, and nothing of others.
func TestReleaseAllReturnsTokensOfThePredecessor(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		for range 3 {
			take(t, process(t, rdb, 5, "a"), key) // and the process ends
		}
		other := take(t, process(t, rdb, 5, "b"), key)
		again := process(t, rdb, 5, "a")
		for range 2 { // the second call finds nothing
			if err := again.ReleaseAll(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			wantFree(t, rdb, key, 4, "after ReleaseAll")
		}
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantFree(t, rdb, key, 5, "at rest")
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	rdb := redistest.Client(t, "redis://127.0.0.1:1")
	for _, cfg := range []redistokens.Config{{}, {Name: "a", Permits: -1}} {
		if _, err := redistokens.New(rdb, cfg); err == nil {
			t.Errorf("New accepts %+v", cfg)
		}
	}
	repeats := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: 2, MaintNotificationsConfig: redistest.Quiet()})
	defer repeats.Close()
	if _, err := redistokens.New(repeats, redistokens.Config{Name: "a"}); err == nil {
		t.Error("New accepts a client that repeats BLPOP")
	}
}
