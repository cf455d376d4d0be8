package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// Three instances sell by redis-cohort, and all that can go wrong does, while customers buy and
// cancel: a leader is stopped beyond its lease and goes on; another is killed with the lease in its
// hands; Redis loses its data; replies to COMMIT are lost. Customers who hear nothing, or that the
// service is busy, ask again elsewhere, with the same key. What they were told in the end is what
// the books say, and what nobody has can still be bought.
func TestCohortsThroughFaults(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	u, err := url.Parse(s.database)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	var all []*spawned
	for i, database := range []string{s.database, s.database, u.String()} {
		all = append(all, spawn(t, "--instance", fmt.Sprint("shop-", i+1), "--database", database, "--redis", s.redis, "--permits", "1000"))
	}
	const units = 1_000_000
	all[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", fmt.Sprintf(`{"on_hand":%d,"strategy":"redis-cohort"}`, units))

	sale := &faultySale{client: customers(t), kept: make(map[string]bool)}
	for _, r := range all {
		sale.urls = append(sale.urls, r.url)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var buyers sync.WaitGroup
	t.Cleanup(buyers.Wait)
	for b := range 24 {
		buyers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := sale.buy(t.Context(), fmt.Sprint("b", b, "-", n)); err != nil {
					if t.Context().Err() == nil { // else the test has failed, and they do not finish
						t.Error(err)
					}
					return
				}
			}
		})
	}
	locks := s.locks(t)
	sells := func(what string) {
		t.Helper()
		before := sale.count()
		becomes(t, "orders after "+what, func() bool { return sale.count() > before+100 })
	}
	sells("the beginning")

	// A leader that does not know that its lease is over.
	held := stopHolder(t, locks, all[1])
	becomes(t, "another lease", func() bool { return fenceNow(t, locks).Token > held.Token })
	sells("a leader has stopped")
	signalTo(t, all[1], syscall.SIGCONT)
	sells("it goes on")

	// A leader that never comes back.
	stopHolder(t, locks, all[0])
	all[0].kill()
	sale.forget(all[0].url)
	sells("a leader was killed")

	// Redis forgets who has the lease.
	rdb, err := redisclient.New(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	for range 5 {
		surely(t, func() error { return rdb.FlushAll(ctx).Err() })
		sells("Redis was emptied")
	}

	// MariaDB has committed, and the instance does not hear it.
	for n := range 5 {
		proxy.DropReply("\x03COMMIT")
		becomes(t, "a lost reply", func() bool { return proxy.Dropped() > n })
		sells("a lost reply")
	}

	stop()
	buyers.Wait()
	audits, err := books(t, s.database).Audit(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Open != int64(len(sale.kept)) {
		t.Errorf("customers have %d units, the books say %d: %q", len(sale.kept), a.Open, a.Broken())
	}
	t.Logf("%d units sold, %d cancelled", len(sale.kept), sale.cancelled)
	if sale.cancelled == 0 {
		t.Error("nobody cancelled")
	}
	r := all[1]
	r.want(t, http.StatusCreated, "POST", "/api/v1/orders", oneUnit)
}

// signalTo sends a signal to an instance.
func signalTo(t *testing.T, s *spawned, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// fenceNow returns the fence of whoever has the lease of the SKU a.
func fenceNow(t *testing.T, locks *redislock.Locker) dlock.Fence {
	t.Helper()
	return inspect(t, locks, stock.LockKey("a")).Fence
}

// stopHolder stops an instance while it has the lease of the SKU a, and returns its fence. That it
// has the lease shows in that nobody gets another one for long.
func stopHolder(t *testing.T, locks *redislock.Locker, s *spawned) (held dlock.Fence) {
	t.Helper()
	becomes(t, "a leader that is stopped", func() bool {
		signalTo(t, s, syscall.SIGSTOP)
		held = fenceNow(t, locks)
		for end := time.Now().Add(leaseTTL / 4); time.Now().Before(end); {
			if f := fenceNow(t, locks); f != held || f.Token == 0 {
				signalTo(t, s, syscall.SIGCONT)
				return false
			}
		}
		return true
	})
	return held
}

// faultySale is what customers were told who ask until they get an answer.
type faultySale struct {
	client *http.Client

	mu        sync.Mutex
	urls      []string        // of the instances that are there
	kept      map[string]bool // ids of the orders that customers have
	cancelled int
}

func (s *faultySale) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) + s.cancelled
}

// forget takes an instance out.
func (s *faultySale) forget(gone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append([]string{}, strings.Fields(strings.ReplaceAll(strings.Join(s.urls, " "), gone, ""))...)
}

func (s *faultySale) anywhere() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls[rand.N(len(s.urls))]
}

// insist asks with one key until somebody answers with something else than that it is busy.
func (s *faultySale) insist(ctx context.Context, key, path, body string) (a answer) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
		patient, cancel := context.WithTimeout(ctx, 3*time.Second) // an instance that is stopped says nothing
		a = ask(patient, s.client, http.MethodPost, s.anywhere()+path, body, "Idempotency-Key", key)
		cancel()
		busy := a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests // without Redis there are no new permits
		if a.err == nil && !busy && !strings.Contains(a.body, "in-flight") {
			return a
		}
		<-time.After(5 * time.Millisecond)
	}
	return a
}

// buy buys one unit, and cancels every third order.
func (s *faultySale) buy(ctx context.Context, key string) error {
	a := s.insist(ctx, key, "/api/v1/orders", oneUnit)
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &o); a.err != nil || a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("order %s: %v", key, a)
	}
	cancels := rand.N(3) == 0
	if cancels {
		if a := s.insist(ctx, key, "/api/v1/orders/"+o.ID+"/cancel", ""); a.err != nil || a.status != http.StatusOK {
			return fmt.Errorf("cancel %s: %v", key, a)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kept[o.ID]:
		return fmt.Errorf("order %s was given to two customers", o.ID)
	case cancels:
		s.cancelled++
	default:
		s.kept[o.ID] = true
	}
	return nil
}
