package redissem_test

import (
	"crypto/rand"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// semScript runs one of the semaphore's scripts as a client with 2 permits does.
func semScript(t testing.TB, rdb redis.UniversalClient, name, key string, args ...any) *redis.Cmd {
	t.Helper()
	text := ""
	for _, part := range []string{"common", name} {
		lua, err := os.ReadFile("lua/" + part + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		text += string(lua) + "\n"
	}
	k := redistest.SemaphoreKey(key)
	return redis.NewScript(text).Run(t.Context(), rdb, []string{k, k + ":queue", k + ":owners", k + ":state", k + ":limit"},
		append([]any{2, 30_000, 5_000, "test:push:"}, args...)...)
}

func semAcquire(t testing.TB, rdb redis.UniversalClient, key, owner string, n int) (answer, token string) {
	t.Helper()
	reply, err := semScript(t, rdb, "acquire", key, owner, n, 1, "", 7).StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	return reply[0], reply[2]
}

// An owner that asks again has one grant with one fencing token, or keeps its place.
func TestSemaphoreScriptsAreIdempotent(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		answer, token := semAcquire(t, rdb, key, "a-1", 2)
		if again, same := semAcquire(t, rdb, key, "a-1", 2); again != answer || same != token || answer != "granted" {
			t.Errorf("first %s %s, again %s %s", answer, token, again, same)
		}
		for _, owner := range []string{"b-1", "c-1", "b-1"} {
			if answer, _ := semAcquire(t, rdb, key, owner, 1); answer != "queued" {
				t.Errorf("%s is %s", owner, answer)
			}
		}
		if order := rdb.ZRange(t.Context(), redistest.SemaphoreKey(key)+":queue", 0, -1).Val(); len(order) != 2 || order[0] != "b-1" {
			t.Errorf("the queue is %v", order)
		}
		if n := rdb.ZCard(t.Context(), redistest.SemaphoreKey(key)).Val(); n != 2 {
			t.Errorf("%d permits are out, want 2", n)
		}
		for range 2 { // the second one finds nothing
			semScript(t, rdb, "abandon", key, "a-1")
		}
		for _, owner := range []string{"b-1", "c-1"} {
			if answer, next := semAcquire(t, rdb, key, owner, 1); answer != "granted" || next <= token {
				t.Errorf("%s is %s %s, after %s", owner, answer, next, token)
			}
		}
	})
}

// An entry of the owners must not outlive what it describes, nor end before it.
func TestSemaphoreKeysEndTogether(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		semAcquire(t, rdb, key, "a-1", 2)
		semAcquire(t, rdb, key, "b-1", 1)
		_, token := semAcquire(t, rdb, key, "a-1", 2)
		semScript(t, rdb, "renew", key, "a-1", token, 2)
		var ends []int64
		for _, suffix := range []string{"", ":queue", ":owners"} {
			at, err := redis.NewScript(`
			local now = redis.call('TIME')
			return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('PTTL', KEYS[1])`).
				Run(t.Context(), rdb, []string{redistest.SemaphoreKey(key) + suffix}).Int64()
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, at)
		}
		if slices.Max(ends)-slices.Min(ends) > 1 || ends[0] < time.Now().Add(40*time.Second).UnixMilli() {
			t.Errorf("the keys end at %v", ends)
		}
	})
}

// Owner, fencing token and number of permits all have to match, and nothing is created.
func TestSemaphoreScriptsCompare(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		_, token := semAcquire(t, rdb, key, "a-1", 2)
		for name, other := range map[string][]any{
			"another owner":  {"b-1", token, 2},
			"another fence":  {"a-1", "1", 2},
			"another number": {"a-1", token, 1},
		} {
			if live, err := semScript(t, rdb, "renew", key, other...).Int64Slice(); err != nil || live[0] != 0 {
				t.Errorf("%s renews: %v, %v", name, live, err)
			}
			if live, err := semScript(t, rdb, "release", key, other...).Int(); err != nil || live != 0 {
				t.Errorf("%s releases: %v, %v", name, live, err)
			}
			if n := rdb.ZCard(t.Context(), redistest.SemaphoreKey(key)).Val(); n != 2 {
				t.Fatalf("%s: %d permits are out, want 2", name, n)
			}
		}
		live, err := semScript(t, rdb, "renew", key, "a-1", token, 2, "b-1", token, 1, "a-1", token, 2).Int64Slice()
		if err != nil || len(live) != 3 || live[0] != 1 || live[1] != 0 || live[2] != 1 {
			t.Errorf("renewals of three: %v, %v", live, err)
		}
		redistest.Expire(t, rdb, redistest.SemaphoreKey(key))
		if live, err := semScript(t, rdb, "renew", key, "a-1", token, 2).Int64Slice(); err != nil || live[0] != 0 {
			t.Errorf("a grant that has expired is renewed: %v, %v", live, err)
		}
		if n := rdb.ZCard(t.Context(), redistest.SemaphoreKey(key)).Val(); n != 0 {
			t.Errorf("%d permits are out", n)
		}
	})
}

// Every script that frees permits grants them to waiters, and sends each grant with the token and the stamp of the
// waiter. Dead waiters are passed over, and leave nothing.
func TestSemaphoreScriptsHandOn(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		for name, free := range map[string]func(key, token string) *redis.Cmd{
			"release": func(key, token string) *redis.Cmd { return semScript(t, rdb, "release", key, "a-1", token, 2) },
			"abandon": func(key, _ string) *redis.Cmd { return semScript(t, rdb, "abandon", key, "a-1") },
			"resize":  func(key, _ string) *redis.Cmd { return semScript(t, rdb, "resize", key, 4) },
			"renew": func(key, _ string) *redis.Cmd {
				redistest.Expire(t, rdb, redistest.SemaphoreKey(key))
				return semScript(t, rdb, "renew", key, "z-1", 1, 1)
			},
		} {
			key, waiter := rand.Text(), "w"+rand.Text()
			pushes := rdb.Subscribe(t.Context(), "test:push:"+waiter)
			defer pushes.Close()
			if _, err := pushes.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, token := semAcquire(t, rdb, key, "a-1", 2)
			semAcquire(t, rdb, key, "dead-1", 1)
			semAcquire(t, rdb, key, waiter+"-1", 2)
			rdb.HSet(t.Context(), redistest.SemaphoreKey(key)+":owners", "dead-1", "1:1:1:1:7") // last renewed in 1970
			if err := free(key, token).Err(); err != nil {
				t.Fatal(name, err)
			}
			entry := rdb.HGet(t.Context(), redistest.SemaphoreKey(key)+":owners", waiter+"-1").Val()
			if len(entry) < 2 || entry[len(entry)-2:] != ":2" {
				t.Errorf("%s: the waiter is %q, want a holder of 2", name, entry)
				continue
			}
			got, err := pushes.ReceiveMessage(t.Context())
			if want := waiter + "-1 granted " + entry[:len(entry)-2] + " 7"; err != nil || got.Payload != want {
				t.Errorf("%s: pushed %v, %v, want %q", name, got, err, want)
			}
			if rdb.HExists(t.Context(), redistest.SemaphoreKey(key)+":owners", "dead-1").Val() || rdb.ZCard(t.Context(), redistest.SemaphoreKey(key)+":queue").Val() != 0 {
				t.Errorf("%s: the dead waiter is still there", name)
			}
		}
	})
}

// A large grant that has expired is free at once, and not in parts.
func TestSemaphoreLargeGrantExpires(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		semScript(t, rdb, "resize", key, 200)
		semAcquire(t, rdb, key, "a-1", 200)
		redistest.Expire(t, rdb, redistest.SemaphoreKey(key))
		if answer, _ := semAcquire(t, rdb, key, "b-1", 200); answer != "granted" {
			t.Errorf("another client is %s", answer)
		}
		if entries := rdb.HKeys(t.Context(), redistest.SemaphoreKey(key)+":owners").Val(); !slices.Equal(entries, []string{"b-1"}) {
			t.Errorf("the owners are %v", entries)
		}
	})
}

// A process dies just before it renews a grant that it was notified of. Its waiters are dead before its permits expire.
func TestSemaphoreNotifiedGrantOutlivesWaiters(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		_, token := semAcquire(t, rdb, key, "a-1", 2)
		semAcquire(t, rdb, key, "p-1", 2)
		if live, err := semScript(t, rdb, "release", key, "a-1", token, 2).Int(); err != nil || live != 1 {
			t.Fatalf("release: %d, %v", live, err)
		}
		until := func(script, name string) int64 {
			ms, err := redis.NewScript(script).Run(t.Context(), rdb, []string{redistest.SemaphoreKey(key) + name}).Int64()
			if err != nil {
				t.Fatal(err)
			}
			return ms
		}
		granted := until(`return redis.call('ZSCORE', KEYS[1], 'p-1:1')`, "")
		semAcquire(t, rdb, key, "p-2", 1)
		dies := until(`return string.match(redis.call('HGET', KEYS[1], 'p-2'), '^%d+:%d+:(%d+)')`, ":owners")
		const renewed = 7_500 / 3 // ms after the grant, when a waiter may ask as well
		if later := granted - dies; later < renewed-500 {
			t.Errorf("the permits expire %d ms after a waiter that asked at once, want %d", later, renewed)
		}
	})
}
