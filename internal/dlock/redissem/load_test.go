package redissem_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// enter is what a resource does that counts its users, per process: KEYS[1] hash
// of users. It returns how many there are, with the new ones.
var enter = redis.NewScript(`
	redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
	local sum = 0
	for _, n in ipairs(redis.call('HVALS', KEYS[1])) do sum = sum + n end
	return sum`)

const loadEnv = "SHOP_TEST_SEMAPHORE_LOAD"

// TestSemaphoreLoadChild is a process that uses the permits until it is killed:
// URL KEY PERMITS.
func TestSemaphoreLoadChild(t *testing.T) {
	args := strings.Fields(os.Getenv(loadEnv))
	if len(args) != 3 {
		t.Skip("this is no child")
	}
	permits, err := strconv.Atoi(args[2])
	if err != nil {
		t.Fatal(err)
	}
	rdb := redistest.Client(t, args[0])
	s := semaphore(t, rdb, permits)
	u := user{t: t, rdb: rdb, key: args[1], name: "child", permits: permits}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { u.work(t.Context(), s, 1, 1<<30) })
	}
	wg.Wait()
}

// user takes permits and uses the resource with them.
type user struct {
	t         testing.TB
	rdb       redis.UniversalClient
	key, name string
	permits   int
	done      atomic.Int64
	most      atomic.Int64
	slow      atomic.Int64
}

func (u *user) work(ctx context.Context, s dlock.Semaphore, heaviest int, rounds int64) {
	for u.done.Add(1) <= rounds || u.most.Load() < int64(u.permits) { // the limit is no test until it has been reached
		n := 1
		if mathrand.N(8) == 0 {
			n = 1 + mathrand.N(heaviest)
		}
		lease, err := s.Acquire(ctx, u.key, n)
		if err != nil {
			if u.fails("Acquire", err) {
				return
			}
			continue
		}
		keys := []string{"test:users:" + u.key}
		users, err := enter.Run(ctx, u.rdb, keys, u.name, n).Int64()
		if err != nil {
			u.t.Error(err)
			return
		}
		for most := u.most.Load(); users > most && !u.most.CompareAndSwap(most, users); {
			most = u.most.Load()
		}
		if users > int64(u.permits) {
			u.t.Errorf("%d permits are in use, there are %d", users, u.permits)
			return
		}
		if _, err := enter.Run(ctx, u.rdb, keys, u.name, -n).Int64(); err != nil {
			u.t.Error(err)
			return
		}
		if err := lease.Release(ctx); err != nil && u.fails("Release", err) {
			return
		}
	}
}

// fails fails the test, unless err is one of a few requests that took too long, as
// on a busy machine. Their permits are released later.
func (u *user) fails(call string, err error) bool {
	if !errors.Is(err, dlock.ErrLost) && u.slow.Add(1) <= 50 {
		u.t.Logf("%s: %v", call, err)
		return false
	}
	u.t.Errorf("%s: %v", call, err)
	return true
}

// TestNeverMoreThanThePermits counts at the resource, while processes are killed
// and the server loses its scripts.
func TestNeverMoreThanThePermits(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const permits, clients, goroutines = 6, 4, 8
		rounds := int64(testbedtest.Size(4_000, 1_000_000))
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		key, admin := rand.Text(), redistest.Client(t, server.URL())
		u := &user{t: t, rdb: admin, key: key, name: "parent", permits: permits}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(rounds)*5*time.Millisecond) // ten times what it takes
		defer cancel()
		var wg sync.WaitGroup
		for range clients {
			s := semaphore(t, redistest.Client(t, server.URL()), permits)
			for range goroutines {
				wg.Go(func() { u.work(ctx, s, permits/2, rounds) })
			}
		}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			wg.Wait()
		}()
		killed := harass(t, server, admin, key, permits, finished)
		t.Logf("%d operations, at most %d permits in use, %d processes killed", rounds, u.most.Load(), killed)
		if u.most.Load() < permits || killed == 0 {
			t.Error("that proves nothing")
		}
		settled(t, admin, key, permits)
	})
}

// harass starts and kills processes, and flushes the scripts, until done is closed.
func harass(t testing.TB, server *testbed.Redis, admin redis.UniversalClient, key string, permits int, done <-chan struct{}) (killed int) {
	t.Helper()
	for { // each leaves at most two permits with the dead, for a TTL
		victim := childCommand(t, "^TestSemaphoreLoadChild$", loadEnv, server.URL(), key, strconv.Itoa(permits))
		launch(t, victim)
		over := false
		select {
		case <-done:
			over = true
		case <-time.After(time.Duration(testbedtest.Size(1, 10)) * (ttl/2 + mathrand.N(ttl))):
		}
		if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		kill(t, victim)
		killed++
		if err := admin.HDel(t.Context(), "test:users:"+key, "child").Err(); err != nil { // the dead use nothing
			t.Error(err)
		}
		if over {
			return killed
		}
	}
}

// settled checks that the store comes to hold nothing but what belongs there.
func settled(t testing.TB, rdb redis.UniversalClient, key string, permits int) {
	t.Helper()
	s := semaphore(t, rdb, permits)
	ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
	defer cancel()
	lease, err := s.Acquire(ctx, key, permits)
	if err != nil {
		t.Fatalf("all permits: %v", err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{{"zcard", ""}, {"zcard", ":queue"}, {"hlen", ":owners"}} {
		n, err := rdb.Do(ctx, c[0], redistest.SemaphoreKey(key)+c[1]).Int()
		if err != nil || n != 0 {
			t.Errorf("%s %s = %d at rest, %v", c[0], redistest.SemaphoreKey(key)+c[1], n, err)
		}
	}
}
