package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
)

// shoppers buy, pay and cancel all the time, each request with a key of its own, and keep
// what they received.
type shoppers struct {
	client *http.Client
	url    func() string // where to send the next request
	group  sync.WaitGroup
	enough atomic.Bool

	mu       sync.Mutex
	received []deal
}

// deal is an order that was asked for, and what was received.
type deal struct {
	key string
	answer
}

// shop lets n shoppers begin with the SKU a.
func (s *shoppers) shop(ctx context.Context, n int) {
	for i := range n {
		s.group.Go(func() {
			for !s.enough.Load() {
				key := order.NewID()
				a := insist(func() answer { return certain(ctx, s.client, s.url(), "a", "Idempotency-Key", key) })
				s.mu.Lock()
				s.received = append(s.received, deal{key, a})
				s.mu.Unlock()
				if a.status != http.StatusCreated {
					continue
				}
				end := []string{"/cancel", "/pay"}[i%2]
				body := []string{"", `{"payment_id":"p1"}`}[i%2]
				path := a.header.Get("Location") + end
				a = insist(func() answer { return ask(ctx, s.client, http.MethodPost, s.url()+path, body) })
				if a.err != nil || a.status != http.StatusOK {
					s.mu.Lock()
					s.received = append(s.received, deal{"", a})
					s.mu.Unlock()
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// count returns how many orders were answered so far.
func (s *shoppers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.received)
}

// stop ends the shopping and fails the test if a request was not answered, or not as it should
// be. Then some are sent again to the given instance, and have to be answered as before.
func (s *shoppers) stop(t *testing.T, again *instance) {
	t.Helper()
	s.enough.Store(true)
	s.group.Wait()
	unknown, failed := 0, 0
	for _, d := range s.received {
		switch {
		case d.err != nil:
			unknown++
		case d.status != http.StatusCreated:
			failed++
		default:
			continue
		}
		if unknown+failed < 5 {
			t.Log(d.answer)
		}
	}
	t.Logf("%d orders, %d failed, %d unknown", len(s.received), failed, unknown)
	if failed+unknown > 0 {
		t.Errorf("%d requests failed and %d had no answer", failed, unknown)
	}
	for _, d := range slices.Concat(s.received[:min(20, len(s.received))], s.received[max(0, len(s.received)-20):]) {
		a := served(t.Context(), s.client, again.url, "a", "Idempotency-Key", d.key)
		if d.key != "" && d.err == nil && (a.status != d.status || a.body != d.body || a.header.Get("Location") != d.header.Get("Location")) {
			t.Errorf("again: %v, before: %v", a, d.answer)
		}
	}
}

// While an instance drains, a client that obeys readiness and Connection: close
// loses nothing.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	var (
		group    sync.WaitGroup
		answered atomic.Int64
		draining atomic.Bool
		stopped  = make(chan struct{})
	)
	for range 16 {
		group.Go(func() {
			for !draining.Load() {
				if status, answer := r.send(t, "POST", "/api/v1/orders", oneUnit); status != http.StatusCreated {
					t.Errorf("status %d: %s", status, answer)
				}
				if answered.Add(1) == 200 {
					close(stopped)
				}
			}
		})
	}
	<-stopped
	r.stop()
	for !draining.Load() { // as a balancer would
		status, _ := r.send(t, "GET", "/readyz", "")
		draining.Store(status == http.StatusServiceUnavailable)
	}
	r.want(t, http.StatusOK, "GET", "/livez", "")
	group.Wait()
	select {
	case <-r.exited:
	case <-time.After(2 * time.Minute):
		t.Error("the instance does not stop")
	}
}
