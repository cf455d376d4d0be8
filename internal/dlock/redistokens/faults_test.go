package redistokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// free counts the tokens that nobody has.
func free(t testing.TB, rdb redis.UniversalClient, key string) int {
	t.Helper()
	n, err := rdb.LLen(t.Context(), redistest.SemaphoreKey(key)+":free").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// Eight clients use keys for the first time at the same moment: the tokens of
// each are made once.
func TestTokensAreMadeOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const clients, keys, permits = 8, 50, 3
		url, run := testbedtest.Redis(t), rand.Text()
		admin := redistest.Client(t, url)
		var (
			wg    sync.WaitGroup
			start = make(chan struct{})
		)
		for range clients {
			s := redistest.Tokens(t, redistest.Client(t, url), redistokens.Config{Permits: permits, TTL: ttl})
			wg.Go(func() {
				<-start
				for i := range keys {
					lease, err := s.TryAcquire(t.Context(), run+strconv.Itoa(i), 1)
					if errors.Is(err, dlock.ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					lease.Release(t.Context())
				}
			})
		}
		close(start)
		wg.Wait()
		for i := range keys {
			if n := free(t, admin, run+strconv.Itoa(i)); n != permits {
				t.Errorf("key %d has %d tokens, want %d", i, n, permits)
			}
		}
	})
}

// A token that was moved for a client that was never notified of it goes back.
func TestLostReplyOfABlockedTake(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server, key := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text()
		url := server.URL()
		admin, proxy := redistest.Client(t, url), testbedtest.StartProxy(t, server.Addr())
		cfg := redistokens.Config{Permits: 2, TTL: ttl}
		holder, waiter := redistest.Tokens(t, redistest.Client(t, url), cfg), redistest.Tokens(t, redistest.Client(t, "redis://"+proxy.Addr()), cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		kept, err := waiter.Acquire(ctx, key, 1) // by the holder that will be retired
		if err != nil {
			t.Fatal(err)
		}
		lease, err := holder.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		proxy.DropReply("blmove")
		failed := make(chan error, 1)
		go func() {
			_, err := waiter.Acquire(ctx, key, 1)
			failed <- err
		}()
		testbedtest.Eventually(t, "the waiter", func() bool { // this server has no other
			clients, err := admin.InfoMap(ctx, "clients").Result()
			return err == nil && clients["Clients"]["blocked_clients"] == "1"
		})
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, dlock.ErrUncertain) || proxy.Dropped() != 1 {
			t.Fatalf("Acquire = %v with %d lost replies, want ErrUncertain with one", err, proxy.Dropped())
		}
		start := time.Now()
		testbedtest.Eventually(t, "the token", func() bool { return free(t, admin, key) == 1 })
		if d := time.Since(start); d > ttl/2 {
			t.Errorf("the token was back after %v", d)
		}
		backoff.Sleep(ctx, ttl) // the other one is renewed under the old name
		if err := kept.Release(ctx); err != nil {
			t.Errorf("the lease of the same client: %v", err)
		}
	})
}

// A request that was given up and is executed later moves a token to a list. A living client finds the token in its
// list. The list of a dead client is read again later.
func TestTokenThatComesLate(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const short = ttl / 4
		key := rand.Text()
		rdb := redistest.Client(t, testbedtest.Redis(t))
		ctx, cancel := context.WithTimeout(t.Context(), 20*ttl)
		defer cancel()
		s := redistest.Tokens(t, rdb, redistokens.Config{Permits: 3, TTL: ttl}) // it is not to expire before
		late := func() {
			t.Helper()
			names, err := rdb.ZRange(ctx, redistest.SemaphoreKey(key)+":holders", 0, 0).Result()
			if err != nil || len(names) != 1 {
				t.Fatalf("holders %v, %v", names, err)
			}
			if err := rdb.LMove(ctx, redistest.SemaphoreKey(key)+":free", redistest.SemaphoreKey(key)+":held:"+names[0], "LEFT", "RIGHT").Err(); err != nil {
				t.Fatal(err)
			}
		}
		lease, err := s.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		late()
		testbedtest.Eventually(t, "the token of a living client", func() bool {
			if err := lease.Err(); err != nil {
				t.Fatalf("the client is taken for dead: %v", err)
			}
			return free(t, rdb, key) == 2
		})
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}

		key = rand.Text()
		silent := redistest.Tokens(t, rdb, redistokens.Config{Permits: 3, TTL: short})
		if lease, err = silent.Acquire(ctx, key, 1); err != nil {
			t.Fatal(err)
		}
		lease.Release(ctx) // or it has expired by now
		names, err := rdb.ZRange(ctx, redistest.SemaphoreKey(key)+":holders", 0, 0).Result()
		if err != nil || len(names) != 1 {
			t.Fatalf("holders %v, %v", names, err)
		}
		backoff.Sleep(ctx, 2*short) // it is silent, and expires
		other := redistest.Tokens(t, rdb, redistokens.Config{Permits: 3, TTL: short})
		all := func() bool {
			lease, err := other.TryAcquire(ctx, key, 3)
			if err == nil {
				lease.Release(ctx)
			}
			return err == nil
		}
		testbedtest.Eventually(t, "all tokens", all)
		if err := rdb.LMove(ctx, redistest.SemaphoreKey(key)+":free", redistest.SemaphoreKey(key)+":held:"+names[0], "LEFT", "RIGHT").Err(); err != nil {
			t.Fatal(err)
		}
		if all() {
			t.Fatal("no token is missing, so the test proves nothing")
		}
		testbedtest.Eventually(t, "the token of a dead client", all)
	})
}

func TestRemove(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		key := rand.Text()
		rdb := redistest.Client(t, testbedtest.Redis(t))
		a, b := redistest.Tokens(t, rdb, redistokens.Config{Permits: 2, TTL: ttl}), redistest.Tokens(t, rdb, redistokens.Config{Permits: 2, TTL: ttl})
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		lease, err := a.Acquire(ctx, key, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Remove(ctx, key); err != nil {
			t.Fatal(err)
		}
		if left := rdb.Keys(ctx, redistest.SemaphoreKey(key)+"*").Val(); len(left) != 0 {
			t.Errorf("Remove left %v", left)
		}
		// The holder is notified of it before anybody else has its permits.
		next, err := a.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Err(); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("the lease of before: %v, want a loss", err)
		}
		if _, err := b.TryAcquire(ctx, key, 2); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v, want ErrHeld", err)
		}
		if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Callers that wait hold one connection for all of them, and not one of the pool
// that renewals and releases need.
func TestNoWaiterStarves(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		opts, err := redis.ParseURL(testbedtest.Redis(t))
		if err != nil {
			t.Fatal(err)
		}
		opts.MaxRetries, opts.ContextTimeoutEnabled, opts.PoolSize = -1, true, 1
		opts.MaintNotificationsConfig = redistest.Quiet()
		rdb := redis.NewClient(opts)
		t.Cleanup(func() { rdb.Close() })
		s, key := redistest.Tokens(t, rdb, redistokens.Config{Permits: 1, TTL: ttl}), rand.Text()
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		lease, err := s.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				lease, err := s.Acquire(ctx, key, 1)
				if err != nil {
					t.Error(err)
					return
				}
				lease.Release(ctx)
			})
		}
		var took []time.Duration
		for range 40 { // several renewals
			backoff.Sleep(ctx, ttl/20)
			start := time.Now()
			if err := rdb.Ping(ctx).Err(); err != nil {
				t.Errorf("a command alongside those that wait: %v", err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		if most, usual := took[len(took)*9/10], took[len(took)/2]; usual > ttl/30 || most > ttl/8 { // who waits has the connection for ttl/4 each time
			t.Errorf("commands alongside those that wait took %v", took)
		}
		blocked, err := rdb.InfoMap(ctx, "clients").Result()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s clients are blocked on the server", blocked["Clients"]["blocked_clients"])
		start := time.Now()
		if err := lease.Release(ctx); err != nil {
			t.Errorf("the lease of the holder: %v", err)
		}
		if d := time.Since(start); d > ttl/4 {
			t.Errorf("Release took %v", d)
		}
		wg.Wait()
	})
}
