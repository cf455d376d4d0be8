package e2e_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowd counts what happens to orders that nobody can count one by one.
type crowd struct {
	client *http.Client
	url    func() string

	mu       sync.Mutex
	answers  map[int]int // by status; 0: not received
	accepted []time.Duration
	refused  []time.Duration
	unknown  int    // answers that say that, and none: there may be an order
	odd      string // an answer that none should get
}

func (c *crowd) order(ctx context.Context) {
	a := purchase(ctx, c.client, c.url(), "a")
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil {
		a.status = 0
	}
	c.answers[a.status]++
	if a.status == 0 || a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "/outcome-unknown") {
		c.unknown++
	}
	switch a.status {
	case http.StatusCreated:
		c.accepted = append(c.accepted, a.took)
	case http.StatusTooManyRequests:
		c.refused = append(c.refused, a.took)
	default:
		c.odd = a.String()
	}
}

// reset forgets everything but what is unknown, and returns how many orders were placed.
func (c *crowd) reset() (placed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	placed = c.answers[http.StatusCreated]
	c.answers, c.accepted, c.refused, c.odd = make(map[int]int), nil, nil, ""
	return placed
}

// strange counts the answers that none should get, by status. A 503 is none of them if the machine has been paused: an order that
// had a permit then may have run out of time.
func (c *crowd) strange(stalls *stallDetector) map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	odd := maps.Clone(c.answers)
	delete(odd, http.StatusCreated)
	delete(odd, http.StatusTooManyRequests)
	if stalls.total() > 0 {
		delete(odd, http.StatusServiceUnavailable)
	}
	return odd
}

// steadily orders by so many hands, each one thing after the other, and returns how many orders
// were placed in a second.
func (c *crowd) steadily(ctx context.Context, hands int, d time.Duration) float64 {
	end := time.Now().Add(d)
	var group sync.WaitGroup
	for range hands {
		group.Go(func() {
			for time.Now().Before(end) {
				c.order(ctx)
			}
		})
	}
	group.Wait()
	return float64(c.answers[http.StatusCreated]) / d.Seconds()
}

// regardless orders so often in a second, whatever becomes of earlier orders.
//
// Those who come while 5,000 wait do not get to send anything.
func (c *crowd) regardless(ctx context.Context, perSecond float64, d time.Duration) float64 {
	began := time.Now()
	var group sync.WaitGroup
	var open atomic.Int64
	sent := 0
	for tick := time.NewTicker(time.Millisecond); time.Since(began) < d; <-tick.C {
		for ; float64(sent) < time.Since(began).Seconds()*perSecond; sent++ {
			if open.Load() > 5000 {
				continue
			}
			open.Add(1)
			group.Go(func() {
				c.order(ctx)
				open.Add(-1)
			})
		}
	}
	took := time.Since(began)
	group.Wait()
	return float64(c.answers[http.StatusCreated]) / took.Seconds()
}

// buyOne places an order of a, and returns its id.
func buyOne(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	a := served(t.Context(), client, url, "a")
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	return orderID(t, a.body)
}

func orderID(t *testing.T, body string) string {
	t.Helper()
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatal(err)
	}
	return o.ID
}
