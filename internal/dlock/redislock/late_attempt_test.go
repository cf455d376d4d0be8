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
	"example.com/shop/internal/testbed/testbedtest"
)

// overtaking lets the first command time out, and delivers it after the second.
type overtaking struct {
	calls atomic.Int32
	late  []redis.Cmder
}

// DialHook implements redis.Hook.
func (*overtaking) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (*overtaking) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (h *overtaking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		switch h.calls.Add(1) {
		case 1:
			for _, cmd := range cmds {
				h.late = append(h.late, redis.NewCmd(ctx, cmd.Args()...))
				cmd.SetErr(os.ErrDeadlineExceeded)
			}
			return os.ErrDeadlineExceeded
		case 2:
			err := next(ctx, cmds)
			return errors.Join(err, next(ctx, h.late))
		}
		return next(ctx, cmds)
	}
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
		rdb.AddHook(hook)
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
