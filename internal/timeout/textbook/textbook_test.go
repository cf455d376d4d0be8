package textbook_test

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout/textbook"
)

func client(t *testing.T) redis.UniversalClient {
	t.Helper()
	opts, err := redis.ParseURL(testbedtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.MaxRetries, opts.ContextTimeoutEnabled = -1, true
	opts.ReadTimeout, opts.WriteTimeout = time.Minute, time.Minute // a machine may pause for seconds
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

// The textbook does get one thing right: no two consumers get the same timer.
func TestPollGivesATimerToOneConsumer(t *testing.T) {
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
