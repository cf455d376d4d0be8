package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The tests of this file run the wrong variant alongside the right one. So they show that the trap is real, and that
// the test detects it.

// lossy returns the address of a proxy to Redis, and a way to lose one reply.
func lossy(t testing.TB) (addr string, lose func(pattern string), lost func() int) {
	t.Helper()
	opts, err := redis.ParseURL(testbedtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, opts.Addr)
	return proxy.Addr(), proxy.DropReply, proxy.Dropped
}

// repeating returns a client with the defaults of go-redis: a command whose
// reply was lost is retried, up to three times.
func repeating(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaintNotificationsConfig: redistest.Quiet()})
	t.Cleanup(func() { rdb.Close() })
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return rdb
}

// unknown hides a client from the check of New.
type unknown struct{ redis.UniversalClient }

// load makes the server know the scripts: the first reply that is lost shall be
// that of a script which has run.
func load(t testing.TB, l *redislock.Locker) {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), rand.Text())
	if err == nil {
		err = lease.Release(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLostReplyOfAnAcquisition(t *testing.T) {
	t.Parallel()
	t.Run("wrong: SET NX by a client that repeats", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			addr, lose, lost := lossy(t)
			rdb, key := repeating(t, addr), rand.Text()
			lose(key)
			taken, err := rdb.SetNX(t.Context(), key, "me", time.Minute).Result()
			if lost() != 1 {
				t.Fatal("no reply was lost, so the test proves nothing")
			}
			if taken || err != nil || get(t, rdb, key) != "me" {
				t.Errorf("SetNX = %v, %v: the client is not refused by its own lock, so the trap is gone", taken, err)
			}
		})
	})
	t.Run("right", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			addr, lose, lost := lossy(t)
			l, key := locker(t, redistest.Client(t, "redis://"+addr)), rand.Text()
			load(t, l)
			lose(key)
			_, err := l.TryAcquire(t.Context(), key)
			if lost() != 1 {
				t.Fatal("no reply was lost, so the test proves nothing")
			}
			if !errors.Is(err, dlock.ErrUncertain) {
				t.Errorf("TryAcquire = %v, want ErrUncertain", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
			defer cancel()
			if err := l.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := l.TryAcquire(t.Context(), key); err != nil {
				t.Errorf("after Close: TryAcquire = %v, want the lock", err)
			}
		})
	})
}

func TestLostReplyOfARelease(t *testing.T) {
	t.Parallel()
	release := func(t testing.TB, l *redislock.Locker, lose func(string), lost func() int) error {
		t.Helper()
		key := rand.Text()
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		lose(lease.Fence().Owner)
		err = lease.Release(t.Context())
		if lost() != 1 {
			t.Fatal("no reply was lost, so the test proves nothing")
		}
		if held := get(t, redistest.Client(t, testbedtest.Redis(t)), lockKey(key)); held != "" {
			t.Fatalf("Redis has not released: %q", held)
		}
		return err
	}
	t.Run("wrong: compare and delete by a client that repeats", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			addr, lose, lost := lossy(t)
			rdb, key, owner := repeating(t, addr), rand.Text(), rand.Text()
			if err := rdb.Set(t.Context(), key, owner, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			lose(owner)
			const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
			n, err := rdb.Eval(t.Context(), compareAndDelete, []string{key}, owner).Int()
			if lost() != 1 {
				t.Fatal("no reply was lost, so the test proves nothing")
			}
			if n != 0 || err != nil || get(t, rdb, key) != "" {
				t.Errorf("release = %d, %v: no loss is made up, so the trap is gone", n, err)
			}
		})
	})
	t.Run("right, even by a client that repeats", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			addr, lose, lost := lossy(t)
			l := locker(t, unknown{repeating(t, addr)})
			load(t, l)
			if err := release(t, l, lose, lost); err == nil || errors.Is(err, dlock.ErrLost) {
				t.Errorf("Release = %v, want the error of the network", err)
			}
		})
	})
	t.Run("right", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			addr, lose, lost := lossy(t)
			l := locker(t, redistest.Client(t, "redis://"+addr))
			load(t, l)
			if err := release(t, l, lose, lost); err == nil || errors.Is(err, dlock.ErrLost) {
				t.Errorf("Release = %v, want the error of the network", err)
			}
		})
	})
}

// TestFailoverToALaggingReplica loses a lock in a failover. Two holders cannot be
// avoided then; what must differ is their fences.
func TestFailoverToALaggingReplica(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		master := testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--repl-diskless-sync-delay", "0"}})
		host, port, _ := strings.Cut(master.Addr(), ":")
		replica := testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--replicaof", host + " " + port}})
		before, after := redistest.Client(t, master.URL()), redistest.Client(t, replica.URL())

		// Some history that both have, then a master that runs ahead.
		key, counter := rand.Text(), rand.Text()
		hold(t, before, key)
		before.Incr(t.Context(), counter)
		testbedtest.Eventually(t, "replication", func() bool { return get(t, after, counter) == "1" })
		if err := after.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
			t.Fatal(err)
		}
		first := hold(t, before, key)
		wrong := before.Incr(t.Context(), counter).Val()
		if err := master.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := after.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
			t.Fatal(err)
		}
		second := hold(t, after, key)

		if again := after.Incr(t.Context(), counter).Val(); again != wrong {
			t.Errorf("a bare counter gave %d and then %d: it does not repeat itself, so the trap is gone", wrong, again)
		}
		if second.Token <= first.Token || first.Passes(second) {
			testbedtest.Final(t, "fence %+v follows %+v", second, first)
		}
		if same := (dlock.Fence{Token: first.Token, Owner: second.Owner}); same.Passes(first) {
			testbedtest.Final(t, "a token that was issued twice passes: %+v after %+v", same, first)
		}
	})
}

// hold takes key, releases it, and returns its fence.
func hold(t testing.TB, rdb redis.UniversalClient, key string) dlock.Fence {
	t.Helper()
	lease, err := locker(t, rdb).TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context())
	return lease.Fence()
}
