package permits_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/dlock/permits/redispermits"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is the one of the service.
const ttl = 3 * time.Second

// calm is a Timeout that a busy machine keeps.
const calm = ttl / 4

// steady is a TTL for tests in which nobody loses anything. It and its Timeout outlast a machine that is paused for
// seconds.
const steady = 24 * time.Second

// unhurried ends the address of a server that may take its time.
const unhurried = "?read_timeout=2m"

func TestMain(m *testing.M) { testbedtest.Main(m) }

// usage counts the operations of all limiters of a test: the bound is about it.
type usage struct{ now, most, total atomic.Int64 }

func (u *usage) begin() {
	now := u.now.Add(1)
	for most := u.most.Load(); now > most && !u.most.CompareAndSwap(most, now); {
		most = u.most.Load()
	}
	u.total.Add(1)
}

func (u *usage) end() { u.now.Add(-1) }

// check fails when more than bound were in use at once.
func (u *usage) check(t testing.TB, bound int) {
	t.Helper()
	t.Logf("%d operations, at most %d at once, of %d", u.total.Load(), u.most.Load(), bound)
	if most := u.most.Load(); most > int64(bound) {
		t.Errorf("%d operations at once, the bound is %d", most, bound)
	}
}

// member is a limiter with a client of its own, as an instance of the service.
type member struct {
	*permits.Limiter

	rdb  redis.UniversalClient
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned
}

// join starts a member of key, which ends with the test unless it is stopped before.
func join(t testing.TB, url, key string, n int) *member {
	t.Helper()
	return joinWith(t, url, key, permits.Config{Permits: n, TTL: ttl, Timeout: calm, Drain: time.Second})
}

// joinSteady is join with leases that nobody loses.
func joinSteady(t testing.TB, url, key string, n int) *member {
	t.Helper()
	return joinWith(t, url+unhurried, key, permits.Config{Permits: n, TTL: steady, Timeout: steady, Drain: time.Second})
}

// shared returns the store of key on rdb.
func shared(t testing.TB, rdb redis.UniversalClient, key string) permits.Store {
	t.Helper()
	s, err := redispermits.New(rdb, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func joinWith(t testing.TB, url, key string, cfg permits.Config) *member {
	t.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := permits.New(shared(t, rdb, key), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &member{Limiter: l, rdb: rdb, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-m.done
		rdb.Close()
	})
	return m
}

// take takes a permit that is free. A store that is slow to lease it is asked again.
func (m *member) take(t testing.TB) (release func()) {
	t.Helper()
	waitFor(t, "a permit", func() (ok bool) {
		var err error
		release, err = m.Take(t.Context())
		return err == nil
	})
	return release
}

// load runs operations of length d in so many goroutines until the function is
// called, or the test ends. The counter is of operations done.
func (m *member) load(t testing.TB, u *usage, goroutines int, d time.Duration) (done *atomic.Int64, end func()) {
	t.Helper()
	done = new(atomic.Int64)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	end = sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	t.Cleanup(end)
	for range goroutines {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				release, err := m.Take(t.Context())
				if err != nil {
					<-time.After(10 * time.Millisecond)
					continue
				}
				u.begin()
				<-time.After(d)
				u.end()
				release()
				done.Add(1)
			}
		})
	}
	return done, end
}

// maxWait bounds a wait of a test, on the busiest machine.
const maxWait = 2 * time.Minute

// waitFor looks for a condition every few milliseconds, for a generous time at most.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(maxWait); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, maxWait)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// together waits until each member has counted all.
func together(t testing.TB, members ...*member) {
	t.Helper()
	waitFor(t, "the members see each other", func() bool {
		for _, m := range members {
			if m.Stats().Instances != len(members) {
				return false
			}
		}
		return true
	})
}

func TestTakeAndRelease(t *testing.T) {
	t.Parallel()
	m := joinSteady(t, testbedtest.Redis(t), rand.Text(), 3)
	var releases []func()
	for range 3 {
		releases = append(releases, m.take(t))
	}
	slow := m.Stats().Rejected
	_, err := m.Take(t.Context())
	saturated, ok := errors.AsType[*permits.ConcurrencyLimitError](err)
	if !errors.Is(err, permits.ErrConcurrencyLimit) || !ok || saturated.RetryAfter <= 0 {
		t.Errorf("the fourth of three: %v", err)
	}
	if s := m.Stats(); s.InUse != 3 || s.Leased != 3 || s.Remaining != 0 || s.Rejected != slow+1 {
		t.Errorf("%+v", s)
	}
	releases[0]()
	releases[0]() // once is enough
	m.take(t)
	if _, err := m.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
		t.Errorf("a permit was given back twice: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller has left")
	cancel(cause)
	if _, err := m.Take(ended); !errors.Is(err, cause) {
		t.Errorf("Take with an ended context: %v", err)
	}
}

func TestWithoutStore(t *testing.T) {
	t.Parallel()
	l, err := permits.New(nil, permits.Config{Permits: 2})
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
		t.Errorf("the third of two: %v", err)
	}
	first()
	if s := l.Stats(); s.Permits != 2 || s.InUse != 1 || s.Remaining != 1 || s.Instances != 1 {
		t.Errorf("%+v", s)
	}
	if err := l.Resize(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if _, err := l.Take(t.Context()); err != nil {
			t.Errorf("permit %d of three: %v", n+2, err)
		}
	}
	if _, err := l.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
		t.Errorf("the fourth of three: %v", err)
	}
	if err := l.Resize(t.Context(), 0); !errors.Is(err, dlock.ErrInvalidPermits) {
		t.Errorf("no permits: %v", err)
	}
	if _, err := permits.New(nil, permits.Config{}); err == nil {
		t.Error("a limiter without permits")
	}
}
