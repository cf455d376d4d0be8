package redistokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// These tests show the losses that the comment of [redistokens.Tokens] lists. Package redissem has none of them.

// A token of a dead process stays with it: no key expires, and no other process may return it.
func TestCrashWithoutRestartKeepsTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		take(t, process(t, rdb, 1, "dead"), key)
		living := process(t, rdb, 1, "living")
		if err := living.ReleaseAll(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if _, err := living.TryAcquire(t.Context(), key); !errors.Is(err, redistokens.ErrNoToken) {
			t.Errorf("TryAcquire = %v, want no token", err)
		}
		keys := rdb.Keys(t.Context(), "shop:tokens:{"+key+"}*").Val()
		if len(keys) == 0 {
			t.Error("the semaphore has no keys")
		}
		for _, k := range keys {
			if left := rdb.TTL(t.Context(), k).Val(); left >= 0 {
				t.Errorf("%s expires in %v", k, left)
			}
		}
	})
}

var errCrash = errors.New("the process has crashed")

// crash makes a command fail, as the end of the process before it would.
func crash(before string) testbedtest.RoundTrips {
	return func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
		if cmds[0].Name() == before {
			return testbedtest.Lose(cmds, errCrash)
		}
		return send(ctx, cmds)
	}
}

// A token that was taken and not counted is lost for good.
func TestCrashBeforeTheCountLosesAToken(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		if err := take(t, process(t, rdb, 2, "b"), key).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		rdb.AddHook(crash("hincrby"))
		a := process(t, rdb, 2, "a")
		if _, err := a.TryAcquire(t.Context(), key); !errors.Is(err, errCrash) {
			t.Fatalf("TryAcquire = %v, want the crash", err)
		}
		if err := a.ReleaseAll(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		wantFree(t, rdb, key, 1, "of two, although nobody holds one,")
	})
}

// Redis has executed BLPOP, and its reply does not arrive.
func TestLostReplyLosesAToken(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{}) // whose blocked clients are those of this test
		url, key := server.URL(), rand.Text()
		admin := redistest.Client(t, url)
		opts, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		proxy := testbedtest.StartProxy(t, opts.Addr)
		b := process(t, admin, 1, "b")
		held := take(t, b, key)
		a := process(t, redistest.Client(t, "redis://"+proxy.Addr()), 1, "a")
		ended := make(chan error, 1)
		proxy.DropReply("blpop")
		go func() {
			_, err := a.Acquire(t.Context(), key)
			ended <- err
		}()
		testbedtest.Eventually(t, "the waiter", func() bool {
			return admin.InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients") != "0"
		})
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Fatal("Acquire has a token, although the reply is lost")
		}
		if err := a.ReleaseAll(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		wantFree(t, admin, key, 0, "of one, although nobody holds it,")
	})
}

// The predecessor is not dead: two processes work with one token, and then there are two.
func TestReleaseAllOfALivingProcessAddsTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		held := take(t, process(t, rdb, 1, "a"), key)
		again := process(t, rdb, 1, "a")
		if err := again.ReleaseAll(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		second := take(t, again, key) // alongside the first
		for _, permit := range []*redistokens.Permit{held, second} {
			if err := permit.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wantFree(t, rdb, key, 2, "of one")
	})
}

// A server without its data grants all tokens again.
func TestLossOfDataAddsTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		s := process(t, rdb, 1, "a")
		held := take(t, s, key)
		if err := rdb.Del(t.Context(), rdb.Keys(t.Context(), "shop:tokens:{"+key+"}*").Val()...).Err(); err != nil {
			t.Fatal(err)
		}
		second := take(t, s, key) // alongside the first
		for _, permit := range []*redistokens.Permit{held, second} {
			if err := permit.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wantFree(t, rdb, key, 2, "of one")
	})
}
