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
	"example.com/shop/internal/platform/testbed"
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

// takeScript runs take.lua as a client does whose locks last for a minute, and returns for how many ms the server refuses.
func takeScript(t testing.TB, rdb redis.UniversalClient, key, owner string, settle int) (left int) {
	t.Helper()
	text, err := os.ReadFile("lua/take.lua")
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{key, key + ":fence", key + ":known", key + ":settling"}
	reply, err := redis.NewScript(string(text)).Run(t.Context(), rdb, keys, owner, 60_000, 120_000, settle).Int()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// A value without an end is no reason to ask again at once.
func TestForeignValueIsNotPolledInATightLoop(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := client(t, testbedtest.Redis(t)), rand.Text()
		if err := rdb.MSet(t.Context(), key, "maintenance", key+":known", "1").Err(); err != nil {
			t.Fatal(err)
		}
		if left := takeScript(t, rdb, key, "a", 0); left != 60_000 {
			t.Errorf("take = %d, want a TTL of 60,000", left)
		}
	})
}

// The clock of a server is set back by a day. It refuses for no longer than before: for a holder that has died, and
// because it began without data.
func TestClockOfAServerIsSetBack(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{OwnClock: true})
	rdb, held, empty := client(t, server.URL()), rand.Text(), rand.Text()
	if err := rdb.Set(t.Context(), held+":known", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	takeScript(t, rdb, held, "dead-1-60000", 0)
	takeScript(t, rdb, empty, "first-1-60000", 60_000)
	if err := server.SetClock(-24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{held, empty} {
		if left := takeScript(t, rdb, key, "next-1-60000", 60_000); left < 1 || left > 60_000 {
			t.Errorf("it refuses for %d ms, want 60,000 at most", left)
		}
	}
}
