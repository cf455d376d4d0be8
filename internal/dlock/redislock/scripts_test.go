package redislock_test

import (
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// script loads one of the package's scripts as a client sends it.
func script(t *testing.T, name string) *redis.Script {
	t.Helper()
	text, err := os.ReadFile(name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	if name == "renew" {
		return redis.NewScript(string(text))
	}
	queue, err := os.ReadFile("queue.lua")
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewScript(string(queue) + "\n" + string(text))
}

// One owner that asks twice has one grant, with one fence and a new TTL.
func TestAcquireScriptIsIdempotent(t *testing.T) {
	t.Parallel()
	targets(t, func(t *testing.T, rdb redis.UniversalClient) {
		acquire, key := script(t, "acquire"), rand.Text()
		keys := []string{lockKey(key), fenceKey(key)}
		first, err := acquire.Run(t.Context(), rdb, keys, "a", 30_000, 60_000).Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := acquire.Run(t.Context(), rdb, keys, "a", 50_000, 60_000).Text()
		if err != nil || again != first {
			t.Errorf("sent again: %q, %v, want %q", again, err, first)
		}
		if got := rdb.PTTL(t.Context(), keys[0]).Val(); got < 40*time.Second {
			t.Errorf("TTL = %v, want that of the second request", got)
		}
		if _, err := acquire.Run(t.Context(), rdb, keys, "b", 30_000, 60_000).Text(); !errors.Is(err, redis.Nil) {
			t.Errorf("another owner: error = %v, want a nil reply", err)
		}
	})
}

// Owner and fence both have to match, and nothing is created.
func TestScriptsCompareOwnerAndFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held, mine string
		want       int
	}{
		"mine":                    {"a:7", "a:7", 1},
		"gone":                    {"", "a:7", 0},
		"another owner":           {"b:8", "a:7", -1},
		"another owner, my fence": {"b:7", "a:7", -1},
		"my owner, another fence": {"a:8", "a:7", -1},
	} {
		t.Run(name, func(t *testing.T) {
			targets(t, func(t *testing.T, rdb redis.UniversalClient) {
				for _, op := range []string{"renew", "release"} {
					k := lockKey(rand.Text())
					if c.held != "" {
						if err := rdb.Set(t.Context(), k, c.held, time.Minute).Err(); err != nil {
							t.Fatal(err)
						}
					}
					got, err := script(t, op).Run(t.Context(), rdb, []string{k}, c.mine, 30_000).Int()
					if err != nil || got != c.want {
						t.Errorf("%s = %d, %v, want %d", op, got, err, c.want)
					}
					left := c.held
					if op == "release" && c.want == 1 {
						left = ""
					}
					if got := get(t, rdb, k); got != left {
						t.Errorf("%s left %q, want %q", op, got, left)
					}
				}
			})
		})
	}
}

func TestAbandonComparesTheOwner(t *testing.T) {
	t.Parallel()
	targets(t, func(t *testing.T, rdb redis.UniversalClient) {
		for owner, want := range map[string]int{"a": 1, "b": 0, "": 0} {
			k := lockKey(rand.Text())
			if err := rdb.Set(t.Context(), k, "a:7", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			got, err := script(t, "abandon").Run(t.Context(), rdb, []string{k}, owner).Int()
			if err != nil || got != want {
				t.Errorf("abandon by %q = %d, %v, want %d", owner, got, err, want)
			}
		}
	})
}
