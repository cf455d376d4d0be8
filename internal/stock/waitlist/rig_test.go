package waitlist_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock/waitlist"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

const (
	queueTTL = 2 * time.Second  // how long a dead waiter is first in the queue where one dies
	calm     = 3 * time.Minute  // the same where nobody may be taken for dead on a busy machine, which may be paused
	patient  = 90 * time.Second // longer than any test here waits for anything
	never    = 10 * patient     // a fallback poll that no test lives to see
)

// services are the clients of one process.
type services struct {
	lock  *redislock.Locker
	cond  *redislock.Cond
	queue *redislock.Locker
	rdb   redis.UniversalClient
}

// connect returns the clients of a process of its own. The TTL is that of the queue; that of the lock is as long as it
// is by default. Where no waiter may count as dead, Redis may be slow too, because no fallback poll replaces a failed
// signal.
func connect(t *testing.T, url string, ttl time.Duration) services {
	t.Helper()
	cfg := redislock.Config{}
	if ttl == calm {
		url, cfg = url+"?read_timeout=1m", redislock.Config{TTL: calm, Timeout: 6 * time.Second}
	}
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	s := services{rdb: rdb}
	if s.lock, err = redislock.New(rdb, cfg); err != nil {
		t.Fatal(err)
	}
	if s.cond, err = redislock.NewCond(s.lock, "units"); err != nil {
		t.Fatal(err)
	}
	cfg.TTL = ttl
	if s.queue, err = redislock.New(rdb, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient)
		defer cancel()
		for _, end := range []func(context.Context) error{s.cond.Close, s.lock.Close, s.queue.Close} {
			_ = end(ctx) // a server that a test has stopped accepts no release
		}
		rdb.Close()
	})
	return s
}

// config uses s, and makes no fallback polls.
func (s services) config() waitlist.Config {
	return waitlist.Config{Lock: s.lock, Cond: s.cond, Queue: s.queue, FallbackPoll: never}
}

// start returns a running Waitlist that ends with the test.
func start(t *testing.T, c waitlist.Config) *waitlist.Waitlist {
	t.Helper()
	w, err := waitlist.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return w
}

// backends are ways to make a process: one of several on Redis, each with clients of
// its own, or of several that share memory.
func backends(t *testing.T) map[string]func(t *testing.T) waitlist.Config {
	t.Helper()
	url, c := testbedtest.Redis(t), memory()
	return map[string]func(t *testing.T) waitlist.Config{
		"memory": func(*testing.T) waitlist.Config { return c },
		"redis":  func(t *testing.T) waitlist.Config { t.Helper(); return connect(t, url, calm).config() },
	}
}

// memory is for one process, or for several goroutines that stand for processes.
func memory() waitlist.Config {
	l := memlock.New(memlock.Config{})
	return waitlist.Config{Lock: l, Cond: memlock.NewCond(l), FallbackPoll: never}
}

// shelf has units of one key.
type shelf struct {
	key string

	mu     sync.Mutex
	units  int
	looks  int
	tries  int
	served []int // who got units, in order
}

func newShelf() *shelf { return &shelf{key: "sku:" + rand.Text()} }

// claim is that of customer id, who wants n units.
func (s *shelf) claim(id, n int) waitlist.Claim {
	return waitlist.Claim{
		Poll: func(context.Context) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.looks++
			return s.units >= n, nil
		},
		Try: func(context.Context) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tries++
			if s.units < n {
				return false, nil
			}
			s.units -= n
			s.served = append(s.served, id)
			return true, nil
		},
	}
}

// give releases n units, and notifies w unless it is nil.
func (s *shelf) give(w *waitlist.Waitlist, n int) {
	s.mu.Lock()
	s.units += n
	s.mu.Unlock()
	if w != nil {
		w.Notify(s.key)
	}
}

// read returns a field under the mutex.
func read[T any](s *shelf, field *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

// count returns how many were served.
func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.served)
}

// standing returns how many wait in the queue for the key of s, -1 if that is not known.
func (s *shelf) standing(t *testing.T, c waitlist.Config) int {
	t.Helper()
	queue := c.Queue
	if queue == nil {
		queue = c.Lock
	}
	state, err := queue.(dlock.Inspector).Inspect(t.Context(), "line:"+s.key)
	if err != nil {
		return -1
	}
	n := state.Waiters
	if state.Held {
		n++
	}
	return n
}

// background runs wait with a deadline, and returns how to get its outcome.
func background(t *testing.T, wait func(ctx context.Context) error) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- wait(ctx) }()
	return done
}
