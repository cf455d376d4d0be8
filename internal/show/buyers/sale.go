package buyers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/platform/backoff"
)

// Sale is what the buyers of one SKU saw.
type Sale struct {
	Accepted, Rejected, Errors int
	Paid                       int // of the accepted
	Elapsed                    time.Duration
	Latencies                  []time.Duration // of all attempts, ascending
	Instances                  map[string]bool // that answered
	FirstError                 string
}

// Outcome says how far an attempt is.
type Outcome int

// The outcomes of an attempt. AtLimit is none yet: all permits are in use, and the buyer asks again.
const (
	AtLimit Outcome = iota
	Accepted
	Rejected
	Failed
)

// Sell lets the buyers make all attempts at sku, each by another customer: buyer-1, buyer-2 and so on. It calls
// seen with the outcome of each, the number of the customer, and how long it took, from several goroutines. It returns when all
// attempts have been made, or soon after ctx ends.
func (s *Shop) Sell(ctx context.Context, sku string, attempts int, seen func(o Outcome, buyer int, took time.Duration)) Sale {
	var (
		next    atomic.Int64
		barrier = make(chan struct{})
		group   sync.WaitGroup
		parts   = make([]Sale, s.Buyers)
	)
	for b := range parts {
		p := &parts[b]
		p.Instances = make(map[string]bool)
		group.Go(func() {
			<-barrier
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= attempts {
					return
				}
				outcome := s.attempt(ctx, p, sku, n, func() { seen(AtLimit, n+1, 0) })
				seen(outcome, n+1, p.Latencies[len(p.Latencies)-1])
			}
		})
	}
	start := time.Now()
	close(barrier)
	group.Wait()
	return Merge(parts, time.Since(start))
}

// attempt is one customer who wants one unit.
func (s *Shop) attempt(ctx context.Context, p *Sale, sku string, n int, atLimit func()) Outcome {
	body := map[string]any{
		"customer_id": fmt.Sprintf("buyer-%d", n+1),
		"items":       []map[string]any{{"sku": sku, "quantity": 1}},
	}
	start, url := time.Now(), s.url(n)
	status, instance, answer, err := s.ask(ctx, url+"/api/v1/orders", body, atLimit)
	p.Latencies = append(p.Latencies, time.Since(start))
	if instance != "" {
		p.Instances[instance] = true
	}
	switch {
	case err != nil:
		p.fail(err.Error())
		return Failed
	case status == http.StatusConflict:
		p.Rejected++
		return Rejected
	case status != http.StatusCreated && (status != http.StatusServiceUnavailable || !s.stored(ctx, url, &answer)):
		p.fail(fmt.Sprintf("status %d: %s", status, bytes.TrimSpace(answer)))
		return Failed
	}
	p.Accepted++
	if s.Pays {
		s.payment(ctx, p, answer, n)
	}
	return Accepted
}

// stored reads an order with an unknown outcome by its id, as a customer without an idempotency key must do. If the
// order exists, it replaces the answer.
func (s *Shop) stored(ctx context.Context, url string, answer *[]byte) bool {
	var unknown struct {
		Order string `json:"order_id"`
	}
	if err := json.Unmarshal(*answer, &unknown); err != nil || unknown.Order == "" || !bytes.Contains(*answer, []byte("outcome-unknown")) {
		return false
	}
	for end := time.Now().Add(asking); ; {
		status, _, order, err := s.Send(ctx, http.MethodGet, url+"/api/v1/orders/"+unknown.Order, nil)
		if err == nil && status == http.StatusOK {
			*answer = order
			return true
		}
		if err != nil || status != http.StatusServiceUnavailable || time.Now().After(end) {
			return false
		}
		if !backoff.Sleep(ctx, pause) {
			return false
		}
	}
}

// payment pays for the order at another instance. The service decides whether the order is still open.
func (s *Shop) payment(ctx context.Context, p *Sale, order []byte, n int) {
	var o struct{ ID string }
	if err := json.Unmarshal(order, &o); err != nil {
		p.fail(err.Error())
		return
	}
	body := map[string]any{"payment_id": fmt.Sprintf("payment-%d", n+1)}
	status, _, answer, err := s.ask(ctx, s.url(n+1)+"/api/v1/orders/"+o.ID+"/pay", body, func() {})
	switch {
	case err != nil:
		p.fail(err.Error())
	case status == http.StatusOK:
		p.Paid++
	case status != http.StatusConflict:
		p.fail(fmt.Sprintf("pay: status %d: %s", status, bytes.TrimSpace(answer)))
	}
}

func (p *Sale) fail(what string) {
	p.Errors++
	if p.FirstError == "" {
		p.FirstError = what
	}
}

// GiveUp counts what is left of all attempts as unanswered, for the given reason.
func (p *Sale) GiveUp(attempts int, why error) {
	p.Errors = attempts - p.Accepted - p.Rejected
	if p.FirstError == "" {
		p.FirstError = "none"
	}
	p.FirstError = fmt.Sprintf("%s; the sale was given up, as %v", p.FirstError, why)
}

// Merge adds up what each buyer saw.
func Merge(parts []Sale, elapsed time.Duration) Sale {
	all := Sale{Elapsed: elapsed, Instances: make(map[string]bool)}
	for _, p := range parts {
		all.Accepted += p.Accepted
		all.Rejected += p.Rejected
		all.Errors += p.Errors
		all.Paid += p.Paid
		all.Latencies = append(all.Latencies, p.Latencies...)
		for name := range p.Instances {
			all.Instances[name] = true
		}
		if all.FirstError == "" {
			all.FirstError = p.FirstError
		}
	}
	slices.Sort(all.Latencies)
	return all
}

// Percentile returns the smallest latency that so many percent of the attempts did
// not exceed.
func (p *Sale) Percentile(percent int) time.Duration {
	if len(p.Latencies) == 0 {
		return 0
	}
	return p.Latencies[(len(p.Latencies)*percent+99)/100-1]
}
