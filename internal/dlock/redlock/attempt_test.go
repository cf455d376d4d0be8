package redlock_test

import (
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

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
		testbedtest.Eventually(t, "the rest", func() bool { // votes that were granted after the decision are released in the background
			for _, server := range s[3:] {
				if client(t, server.URL()).Exists(t.Context(), lockKey(key)).Val() != 0 {
					return false
				}
			}
			return true
		})
	})
}

// A value without an end is no reason to ask again at once.
func TestForeignValueIsNotPolledInATightLoop(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		text, err := os.ReadFile("lua/take.lua")
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
