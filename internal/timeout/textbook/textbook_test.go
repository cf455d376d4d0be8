package textbook_test

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"example.com/shop/internal/timeout/textbook"
)

func client(t *testing.T) redis.UniversalClient {
	t.Helper()
	opts, err := redis.ParseURL(testbedtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.MaxRetries, opts.ContextTimeoutEnabled = -1, true
	opts.ReadTimeout, opts.WriteTimeout = time.Minute, time.Minute // a machine may stand still for seconds
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// A consumer takes a timer and dies before it has handled it. Nothing is left of
// the timer: no consumer gets it, however long it waits.
func TestCrashLosesTheTimer(t *testing.T) {
	t.Parallel()
	rdb := client(t)
	q := textbook.Queue{Redis: rdb, Key: "textbook:" + rand.Text()}
	if err := q.Schedule(t.Context(), "order", time.Now()); err != nil {
		t.Fatal(err)
	}
	if got, err := q.Poll(t.Context(), 10); err != nil || len(got) != 1 {
		t.Fatalf("Poll = %v, %v; want the timer", got, err)
	}
	// The consumer has crashed here. No later time can bring back what is not there.
	if n, err := rdb.Exists(t.Context(), q.Key).Result(); err != nil || n != 0 {
		t.Errorf("%d keys (%v) after the crash: the textbook has learned to keep timers", n, err)
	}
	if got, err := q.Poll(t.Context(), 10); err != nil || len(got) != 0 {
		t.Errorf("Poll = %v, %v; the textbook has learned to keep timers", got, err)
	}
}

// The same crash with a lease: the timer comes back, and says that it was lent before.
func TestCrashWithALeaseKeepsTheTimer(t *testing.T) {
	t.Parallel()
	x, err := redisindex.New(client(t), redisindex.Config{Shards: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	kind, lease := rand.Text(), 100*time.Millisecond
	if _, err := x.Schedule(t.Context(), kind, "base", false, []timeout.Hint{{ID: "order", At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	s := x.Shards(kind, "base")[0]
	// One consumer crashes with the timer, another one gets it.
	for attempt, end := 1, time.Now().Add(time.Minute); attempt <= 2; {
		c, err := x.Claim(t.Context(), s, 10, lease)
		if err != nil || time.Now().After(end) {
			t.Fatalf("the timer has not come back (%v)", err)
		}
		if len(c.Timers) == 1 {
			if c.Timers[0].ID != "order" || c.Timers[0].Attempt != attempt {
				t.Errorf("lent %+v, want attempt %d", c.Timers[0], attempt)
			}
			attempt++
			continue
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// What the textbook does get right: no two consumers get the same timer.
func TestPollLendsOnce(t *testing.T) {
	t.Parallel()
	q := textbook.Queue{Redis: client(t), Key: "textbook:" + rand.Text()}
	const n = 200
	for range n {
		if err := q.Schedule(t.Context(), rand.Text(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	seen, total := map[string]int{}, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				ids, err := q.Poll(t.Context(), 20)
				if err != nil {
					t.Error(err)
					return
				}
				if left, err := q.Redis.ZCard(t.Context(), q.Key).Result(); err == nil && left == 0 && len(ids) == 0 {
					return
				}
				mu.Lock()
				for _, id := range ids {
					seen[id]++
					total++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != n || total != n {
		t.Errorf("%d timers were taken %d times, want each of %d once", len(seen), total, n)
	}
}
