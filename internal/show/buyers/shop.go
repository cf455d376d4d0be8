// Package buyers simulates the customers of a sale: many connections that order the same stock at the same time.
//
// A buyer that is refused because the service is busy asks again, because a refusal has no effect. A buyer whose
// order has an unknown outcome reads the order.
package buyers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/shop/internal/platform/backoff"
)

// Shop is the running service as buyers see it.
type Shop struct {
	URLs   func() []string // base URLs of the instances; buyers take them in turn
	Buyers int             // who ask at the same time
	Pays   bool            // customers pay what they get
	Wait   time.Duration   // whole seconds that an order waits for units of a SKU that is sold out

	client *http.Client
}

// New returns the service at the base URLs.
func New(urls []string, buyers int) *Shop {
	return &Shop{URLs: func() []string { return urls }, Buyers: buyers, client: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: buyers},
	}}
}

// Close closes idle connections.
func (s *Shop) Close() { s.client.CloseIdleConnections() }

// url returns the base URL for the nth request.
func (s *Shop) url(n int) string {
	urls := s.URLs()
	return urls[n%len(urls)]
}

// Send makes one request and returns the status, the instance that answered
// and the body.
func (s *Shop) Send(ctx context.Context, method, url string, body any) (status int, instance string, answer []byte, err error) {
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
	if s.Wait > 0 { // only orders wait
		req.Header.Set("Prefer", fmt.Sprintf("wait=%.0f", s.Wait.Seconds()))
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

// ask posts an order, and retries while the service is too busy or all permits are in use, because then nothing has
// happened. So it needs no key, and a key would cost a row per refusal. It calls atLimit whenever all permits are in
// use, which shows that the service works.
func (s *Shop) ask(ctx context.Context, url string, body any, atLimit func()) (status int, instance string, answer []byte, err error) {
	for end := time.Now().Add(asking); ; {
		before, said := status, answer
		status, instance, answer, err = s.Send(ctx, http.MethodPost, url, body)
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
		if !backoff.Sleep(ctx, pause) {
			return status, instance, answer, err
		}
	}
}

// Stock puts units of a new SKU on sale. It retries while the service is too busy, because the request is idempotent.
func (s *Shop) Stock(ctx context.Context, sku, strategy string, units int) error {
	for end, again := time.Now().Add(asking), false; ; again = true {
		status, _, answer, err := s.Send(ctx, http.MethodPut, s.url(0)+"/api/v1/skus/"+sku,
			map[string]any{"on_hand": units, "strategy": strategy})
		switch {
		case err != nil:
			return err
		case status == http.StatusCreated, status == http.StatusOK && again:
			return nil
		case status != http.StatusServiceUnavailable, time.Now().After(end):
			return fmt.Errorf("create SKU %s: status %d: %s", sku, status, bytes.TrimSpace(answer))
		}
		if !backoff.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// Strategies returns the names of those that the service has the stores for, and of the others.
func (s *Shop) Strategies(ctx context.Context) (offered, missing []string, err error) {
	status, _, answer, err := s.Send(ctx, http.MethodGet, s.url(0)+"/api/v1/strategies", nil)
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

// Count asks often enough that a balancer has shown each instance behind it,
// and returns how many different ones answered.
func (s *Shop) Count(ctx context.Context) (int, error) {
	names := make(map[string]bool)
	for range s.Buyers {
		status, name, _, err := s.Send(ctx, http.MethodGet, s.url(0)+"/readyz", nil)
		if err != nil {
			return 0, err
		}
		if status != http.StatusOK {
			return 0, fmt.Errorf("%s/readyz: status %d", s.url(0), status)
		}
		names[name] = true
	}
	return len(names), nil
}
