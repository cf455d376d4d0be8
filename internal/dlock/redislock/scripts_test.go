package redislock_test

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/redisx"
)

// script loads one of the package's scripts as a client sends it.
func script(t testing.TB, name string) *redis.Script {
	t.Helper()
	files := map[string][]string{
		"acquire": {"take", "queue", "acquire"}, "release": {"free", "queue", "release"}, "renew": {"renew"},
	}[name]
	if files == nil {
		files = []string{"queue", name}
	}
	lua := redisx.Folder{Files: os.DirFS(".").(fs.ReadFileFS)}
	return redis.NewScript(lua.Text(files...))
}

// run calls a script of the queue as a client with a TTL of 30 s does, whose
// waiters live for 2.5 s.
func run(t testing.TB, rdb redis.UniversalClient, name, key, first string, more ...any) any {
	t.Helper()
	k := lockKey(key)
	args := append([]any{first, 60_000, 3_000, 2_500_000, "push:"}, more...)
	reply, err := script(t, name).Run(t.Context(), rdb, []string{k, k + ":fence", k + ":queue", k + ":alive"}, args...).Result()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// One owner that asks twice has one grant, with one fencing token and a new TTL.
func TestAcquireScriptIsIdempotent(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		first := run(t, rdb, "acquire", key, "a", 30_000, "")
		if token, ok := first.(string); !ok || len(token) != 16 {
			t.Fatalf("acquire = %v, want a token", first)
		}
		if again := run(t, rdb, "acquire", key, "a", 50_000, ""); again != first {
			t.Errorf("sent again: %v, want %v", again, first)
		}
		if got := rdb.PTTL(t.Context(), lockKey(key)).Val(); got < 40*time.Second {
			t.Errorf("TTL = %v, want that of the second request", got)
		}
		if other, ok := run(t, rdb, "acquire", key, "b", 30_000, "").(int64); !ok || other <= 0 {
			t.Errorf("another owner: %v, want the TTL", other)
		}
	})
}

// A waiter has one place in the queue, however often it asks.
func TestQueueOfScripts(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		run(t, rdb, "acquire", key, "p-1", 30_000, "")
		for _, id := range []string{"p-2", "p-3", "p-2", "p-4", "p-3"} {
			if _, ok := run(t, rdb, "acquire", key, id, 30_000, "77").(int64); !ok {
				t.Fatalf("%s has the lock alongside its holder", id)
			}
		}
		if got := rdb.ZRange(t.Context(), lockKey(key)+":queue", 0, -1).Val(); strings.Join(got, " ") != "p-2 p-3 p-4" {
			t.Errorf("queue = %v", got)
		}
		if undone := run(t, rdb, "abandon", key, "p-2"); undone != int64(1) {
			t.Errorf("abandon = %v, want 1", undone)
		}
		if got := run(t, rdb, "acquire", key, "p-5", 30_000, ""); got == int64(-1) {
			t.Errorf("TryAcquire = %v", got)
		}
		run(t, rdb, "abandon", key, "p-1")
		held := get(t, rdb, lockKey(key))
		if !strings.HasPrefix(held, "p-3:") {
			t.Errorf("after the holder p-3 has waited longest, and %q has the lock", held)
		}
		if got := rdb.PTTL(t.Context(), lockKey(key)).Val(); got > 3*time.Second {
			t.Errorf("TTL = %v, want that of a grant that nobody has confirmed", got)
		}
		if got := run(t, rdb, "release", key, held); got != int64(1) {
			t.Errorf("release = %v, want 1", got)
		}
		run(t, rdb, "release", key, get(t, rdb, lockKey(key)))
		if n := rdb.Exists(t.Context(), lockKey(key), lockKey(key)+":queue", lockKey(key)+":alive").Val(); n != 0 {
			t.Errorf("%d keys are left when all have gone", n)
		}
	})
}

// Owner and fencing token both have to match, and nothing is created.
func TestScriptsCompareOwnerAndFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held, fence, mine string
		want              int64
	}{
		"mine":                       {"a:7", "7:1:", "a:7", 1},
		"gone":                       {"", "", "a:7", 0},
		"another owner":              {"b:8", "8:1:", "a:7", -1},
		"another owner, my fence":    {"b:7", "7:1:", "a:7", -1},
		"my owner, another fence":    {"a:8", "8:1:", "a:7", -1},
		"forced out":                 {"", "8:1:a", "a:7", -2},
		"force-released, taken":      {"b:9", "9:1:a", "a:7", -2},
		"another was force-released": {"b:9", "9:1:c", "a:7", -1},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
				for _, op := range []string{"renew", "release"} {
					key := rand.Text()
					k := lockKey(key)
					for name, value := range map[string]string{k: c.held, k + ":fence": c.fence} {
						if value == "" {
							continue
						}
						if err := rdb.Set(t.Context(), name, value, time.Minute).Err(); err != nil {
							t.Fatal(err)
						}
					}
					if got := run(t, rdb, op, key, c.mine, 30_000); got != c.want {
						t.Errorf("%s = %v, want %d", op, got, c.want)
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
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		for owner, want := range map[string]int64{"a": 1, "b": 0, "": 0} {
			key := rand.Text()
			if err := rdb.Set(t.Context(), lockKey(key), "a:7", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			if got := run(t, rdb, "abandon", key, owner); got != want {
				t.Errorf("abandon by %q = %v, want %d", owner, got, want)
			}
		}
	})
}

// Dead waiters are passed over, four at a time, and the first live one is next.
func TestDeadWaitersAreSkippedInBatches(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		k := lockKey(key)
		for i := range 9 {
			id := "dead-" + string(rune('0'+i))
			rdb.ZAdd(t.Context(), k+":queue", redis.Z{Score: float64(i), Member: id})
			rdb.HSet(t.Context(), k+":alive", id, "1 1 1")
		}
		for range 2 {
			if got := run(t, rdb, "acquire", key, "live-1", 30_000, "5"); got != int64(-1) {
				t.Fatalf("acquire = %v, want -1: there are more", got)
			}
		}
		if _, ok := run(t, rdb, "acquire", key, "live-1", 30_000, "5").(string); !ok {
			t.Fatal("the first waiter that lives does not get the lock")
		}
	})
}

// A waiter of the previous version sends other fields. It is not granted the lock, because the script cannot know for
// how long that waiter would consider the grant valid.
func TestWaiterOfAPreviousVersionIsSkipped(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		k := lockKey(key)
		now, err := rdb.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		rdb.ZAdd(t.Context(), k+":queue", redis.Z{Score: 1, Member: "before-1"})
		rdb.HSet(t.Context(), k+":alive", "before-1", fmt.Sprintf("%d 5", now.Add(time.Hour).UnixMicro()))
		if _, ok := run(t, rdb, "acquire", key, "now-1", 30_000, "5").(string); !ok {
			t.Error("the lock is not free")
		}
	})
}
