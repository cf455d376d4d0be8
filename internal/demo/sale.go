package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sale is what the buyers of one variant saw.
type sale struct {
	accepted, rejected, errors int
	paid                       int // of the accepted
	elapsed                    time.Duration
	latencies                  []time.Duration // of all attempts, ascending
	instances                  map[string]bool
	firstError                 string
}

// shop is the running service as a buyer sees it.
type shop struct {
	urls   []string
	client *http.Client

	pays bool // customers pay what they get
}

func newShop(urls []string) *shop {
	return &shop{urls: urls, client: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: buyers, MaxIdleConns: buyers * len(urls)},
	}}
}

// send makes one request and returns the status, the instance that answered
// and the body.
func (s *shop) send(ctx context.Context, method, url string, body any) (status int, instance string, answer []byte, err error) {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return 0, "", nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, &b)
	if err != nil {
		return 0, "", nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("X-Instance-Id"), answer, err
}

// asking is how long a customer asks a service that is too busy, and pause how long between.
const (
	asking = 5 * time.Minute
	pause  = 100 * time.Millisecond
)

// ask posts what a customer wants, again and again while the service says that it is too
// busy, or that all permits are in use: then nothing has happened. It needs no key for that,
// which would make a row of every refusal and so the sale another one. It calls atLimit whenever
// all permits are in use: a service that says so is at work.
func (s *shop) ask(ctx context.Context, url string, body any, atLimit func()) (status int, instance string, answer []byte, err error) {
	for end := time.Now().Add(asking); ; {
		before, said := status, answer
		status, instance, answer, err = s.send(ctx, http.MethodPost, url, body)
		if err != nil && ctx.Err() != nil && before != 0 {
			return before, instance, said, nil // which says more than that the time is over
		}
		busy := status == http.StatusTooManyRequests ||
			status == http.StatusServiceUnavailable && !bytes.Contains(answer, []byte("outcome-unknown"))
		if err != nil || !busy || time.Now().After(end) {
			return status, instance, answer, err
		}
		if status == http.StatusTooManyRequests {
			atLimit()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return status, instance, answer, err
		}
	}
}

// stock puts units of a new SKU on sale, and asks again while the service is too busy: to put them
// there twice is to put them there.
func (s *shop) stock(ctx context.Context, sku, strategy string, units int) error {
	for end, again := time.Now().Add(asking), false; ; again = true {
		status, _, answer, err := s.send(ctx, http.MethodPut, s.urls[0]+"/api/v1/skus/"+sku,
			map[string]any{"on_hand": units, "strategy": strategy})
		switch {
		case err != nil:
			return err
		case status == http.StatusCreated, status == http.StatusOK && again:
			return nil
		case status != http.StatusServiceUnavailable, time.Now().After(end):
			return fmt.Errorf("create SKU %s: status %d: %s", sku, status, bytes.TrimSpace(answer))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// strategies returns the names of those that the service has the stores for, and of the others.
func (s *shop) strategies(ctx context.Context) (offered, missing []string, err error) {
	status, _, answer, err := s.send(ctx, http.MethodGet, s.urls[0]+"/api/v1/strategies", nil)
	if err != nil {
		return nil, nil, err
	}
	var list struct {
		Strategies []struct {
			Name      string
			Available bool
		}
	}
	if err := json.Unmarshal(answer, &list); err != nil || status != http.StatusOK {
		return nil, nil, fmt.Errorf("list strategies: status %d: %s", status, bytes.TrimSpace(answer))
	}
	for _, st := range list.Strategies {
		if st.Available {
			offered = append(offered, st.Name)
		} else {
			missing = append(missing, st.Name)
		}
	}
	return offered, missing, nil
}

// count asks often enough that a balancer has shown each instance behind it,
// and returns how many different ones answered.
func (s *shop) count(ctx context.Context) (int, error) {
	names := make(map[string]bool)
	for range buyers {
		status, name, _, err := s.send(ctx, http.MethodGet, s.urls[0]+"/readyz", nil)
		if err != nil {
			return 0, err
		}
		if status != http.StatusOK {
			return 0, fmt.Errorf("%s/readyz: status %d", s.urls[0], status)
		}
		names[name] = true
	}
	return len(names), nil
}

// sell lets the buyers make all attempts at sku, each by another customer. It
// calls progress with the number of attempts answered so far, also when somebody
// is notified that all permits are in use, from several goroutines.
func (s *shop) sell(ctx context.Context, sku string, attempts int, progress func(done int)) sale {
	var (
		next, done atomic.Int64
		barrier    = make(chan struct{})
		group      sync.WaitGroup
		parts      = make([]sale, buyers)
	)
	for b := range buyers {
		parts[b].instances = make(map[string]bool)
		group.Go(func() {
			<-barrier
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= attempts {
					return
				}
				s.attempt(ctx, &parts[b], sku, n, func() { progress(int(done.Load())) })
				progress(int(done.Add(1)))
			}
		})
	}
	start := time.Now()
	close(barrier)
	group.Wait()
	return merge(parts, time.Since(start))
}

// attempt is one customer who wants one unit.
func (s *shop) attempt(ctx context.Context, p *sale, sku string, n int, atLimit func()) {
	body := map[string]any{
		"customer_id": fmt.Sprintf("buyer-%d", n+1),
		"items":       []map[string]any{{"sku": sku, "quantity": 1}},
	}
	start := time.Now()
	status, instance, answer, err := s.ask(ctx, s.urls[n%len(s.urls)]+"/api/v1/orders", body, atLimit)
	p.latencies = append(p.latencies, time.Since(start))
	if instance != "" {
		p.instances[instance] = true
	}
	switch {
	case err != nil:
		p.fail(err.Error())
	case status == http.StatusCreated:
		p.accepted++
		if s.pays {
			s.payment(ctx, p, answer, n)
		}
	case status == http.StatusConflict:
		p.rejected++
	case status == http.StatusServiceUnavailable && s.stored(ctx, s.urls[n%len(s.urls)], &answer):
		p.accepted++
		if s.pays {
			s.payment(ctx, p, answer, n)
		}
	default:
		p.fail(fmt.Sprintf("status %d: %s", status, bytes.TrimSpace(answer)))
	}
}

// stored finds out what has become of an order of which the service does not know that, by its number, as
// a customer is told to do who has sent no key. It puts the order in place of the answer if it is there.
func (s *shop) stored(ctx context.Context, url string, answer *[]byte) bool {
	var unknown struct {
		Order string `json:"order_id"`
	}
	if err := json.Unmarshal(*answer, &unknown); err != nil || unknown.Order == "" || !bytes.Contains(*answer, []byte("outcome-unknown")) {
		return false
	}
	for end := time.Now().Add(asking); ; {
		status, _, order, err := s.send(ctx, http.MethodGet, url+"/api/v1/orders/"+unknown.Order, nil)
		if err == nil && status == http.StatusOK {
			*answer = order
			return true
		}
		if err != nil || status != http.StatusServiceUnavailable || time.Now().After(end) {
			return false
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// payment is the same customer who pays, at another instance. Whether the order
// still stands is for the service to say.
func (s *shop) payment(ctx context.Context, p *sale, order []byte, n int) {
	var o struct{ ID string }
	if err := json.Unmarshal(order, &o); err != nil {
		p.fail(err.Error())
		return
	}
	body := map[string]any{"payment_id": fmt.Sprintf("payment-%d", n+1)}
	status, _, answer, err := s.ask(ctx, s.urls[(n+1)%len(s.urls)]+"/api/v1/orders/"+o.ID+"/pay", body, func() {})
	switch {
	case err != nil:
		p.fail(err.Error())
	case status == http.StatusOK:
		p.paid++
	case status != http.StatusConflict:
		p.fail(fmt.Sprintf("pay: status %d: %s", status, bytes.TrimSpace(answer)))
	}
}

func (p *sale) fail(what string) {
	p.errors++
	if p.firstError == "" {
		p.firstError = what
	}
}

// giveUp counts what is left of all attempts as unanswered, for the given reason.
func (p *sale) giveUp(attempts int, why error) {
	p.errors = attempts - p.accepted - p.rejected
	if p.firstError == "" {
		p.firstError = "none"
	}
	p.firstError = fmt.Sprintf("%s; the sale was given up, as %v", p.firstError, why)
}

// merge adds up what each buyer saw.
func merge(parts []sale, elapsed time.Duration) sale {
	all := sale{elapsed: elapsed, instances: make(map[string]bool)}
	for _, p := range parts {
		all.accepted += p.accepted
		all.rejected += p.rejected
		all.errors += p.errors
		all.paid += p.paid
		all.latencies = append(all.latencies, p.latencies...)
		for name := range p.instances {
			all.instances[name] = true
		}
		if all.firstError == "" {
			all.firstError = p.firstError
		}
	}
	slices.Sort(all.latencies)
	return all
}

// percentile returns the smallest latency that so many percent of the attempts did
// not exceed.
func (p *sale) percentile(percent int) time.Duration {
	if len(p.latencies) == 0 {
		return 0
	}
	return p.latencies[(len(p.latencies)*percent+99)/100-1]
}
