package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// overtaking lets the first command time out, and delivers it after the second.
type overtaking struct {
	calls atomic.Int32
	late  []redis.Cmder
}

func (h *overtaking) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	switch h.calls.Add(1) {
	case 1:
		h.late = testbedtest.Late(ctx, cmds)
		return testbedtest.Lose(cmds, os.ErrDeadlineExceeded)
	case 2:
		err := send(ctx, cmds)
		return errors.Join(err, send(ctx, h.late))
	}
	return send(ctx, cmds)
}

// TestAttemptThatArrivesAfterItsRollback is why abandon polls twice: the first
// look overtakes the attempt, finds nothing, and then the attempt takes the lock.
func TestAttemptThatArrivesAfterItsRollback(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		for _, name := range []string{"acquire", "abandon"} {
			if err := script(t, name).Load(t.Context(), rdb).Err(); err != nil {
				t.Fatal(err)
			}
		}
		start, hook := time.Now(), &overtaking{}
		rdb.AddHook(testbedtest.RoundTrips(hook.roundTrip))
		l := locker(t, rdb)
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrUncertain) {
			t.Fatalf("TryAcquire = %v, want ErrUncertain", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if get(t, rdb, fenceKey(key)) == "" {
			t.Fatal("the attempt has not arrived, so the test proves nothing")
		}
		if held := get(t, rdb, lockKey(key)); held != "" && time.Since(start) < ttl {
			t.Errorf("after Close the lock is held by %q, whom nobody knows", held)
		}
	})
}

// TestAttemptOnAPausedServerIsRolledBackWhenItResumes pauses the server for longer than the TTL. It executes the attempt
// when it resumes, long after the attempt has failed.
func TestAttemptOnAPausedServerIsRolledBackWhenItResumes(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb, key := redistest.Client(t, server.URL()), rand.Text()
		l := configured(t, rdb, redislock.Config{TTL: ttl, Timeout: ttl / 10})
		load(t, l)
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrUncertain) {
			t.Fatalf("TryAcquire = %v, want ErrUncertain", err)
		}
		<-time.After(3 * ttl / 2)
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		admin := redistest.Client(t, server.URL())
		testbedtest.Eventually(t, "the attempt, and its end", func() bool {
			return get(t, admin, fenceKey(key)) != "" && get(t, admin, lockKey(key)) == ""
		})
		stats, err := admin.InfoMap(t.Context(), "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		if n := stats["Stats"]["expired_keys"]; n != "0" {
			t.Errorf("%s keys have expired, want 0: the lock was held for its TTL by an owner that had given up", n)
		}
	})
}
