package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is the response that a client receives. It receives nothing if err is set.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	took   time.Duration
}

// String is for messages.
func (a answer) String() string {
	return fmt.Sprintf("status %d after %v, %v: %s", a.status, a.took.Round(time.Millisecond), a.err, a.body)
}

// customers are clients with connections of their own. They report every request without a response, and never retry.
func customers(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{
		MaxIdleConnsPerHost: 10_000,
		IdleConnTimeout:     30 * time.Second, // a server closes its side after a minute
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends one request; header is pairs of names and values. It may be called in any goroutine.
func ask(ctx context.Context, client *http.Client, method, url, body string, header ...string) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Without GetBody net/http cannot send it again.
	req, err := http.NewRequestWithContext(ctx, method, url, struct{ io.Reader }{strings.NewReader(body)})
	if err != nil {
		return answer{err: err}
	}
	req.ContentLength = int64(len(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text), err: err}
}

// patient is a transport that knows whether its client was asked to retry.
type patient struct {
	http.RoundTripper

	permits bool // that all are in use does not count

	mu   sync.Mutex
	told int
	last string // the latest event
}

// RoundTrip implements [http.RoundTripper].
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusConflict {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if p.permits && inUse(resp.StatusCode, string(text)) {
		return resp, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told++
	p.last = fmt.Sprintf("%s %s: %s: %s", r.Method, r.URL, resp.Status, text)
	return resp, nil
}

// judge fails the test if the client was asked to retry, though the machine was not paused.
func (p *patient) judge(t *testing.T, stalls *stallDetector) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told > 0 && stalls.total() == 0 {
		t.Errorf("%d requests were refused for now, though the machine was not paused, such as %s", p.told, p.last)
	}
}

// noticing returns customers of whom is known whether they had to come again.
func noticing(t *testing.T) (*http.Client, *patient) {
	t.Helper()
	client := customers(t)
	p := &patient{RoundTripper: client.Transport}
	client.Transport = p
	return client, p
}

// purchase asks the instance at url for one unit of a SKU.
func purchase(ctx context.Context, client *http.Client, url, sku string, header ...string) answer {
	return ask(ctx, client, http.MethodPost, url+"/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1), header...)
}

// inUse reports whether an order was refused because all permits are in use. An instance may say so
// while some are free, if Redis is slow to lease it one; then nothing has happened.
func inUse(status int, body string) bool {
	return status == http.StatusTooManyRequests && strings.Contains(body, "/concurrency-limit")
}

// later reports whether a request was refused for now and without effect. All permits are in use, its time was over,
// a duplicate is in flight, or a store did not respond. This happens if the machine is busy, or was paused for
// seconds. An unknown outcome and an instance that stops do not count.
func later(status int, body string) bool {
	var kinds []string
	switch status {
	case http.StatusConflict:
		kinds = []string{"/request-in-flight"}
	case http.StatusServiceUnavailable:
		kinds = []string{"/problems/lock-timeout", "/problems/store-unavailable"}
	}
	return inUse(status, body) || slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(body, kind) })
}

// insist repeats a request that is refused for now, as customers do.
func insist(request func() answer) (a answer) {
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if a = request(); a.err != nil || !later(a.status, a.body) || time.Now().After(end) {
			return a
		}
	}
}

// permitted repeats a request that is refused because all permits are in use, and for no other reason.
func permitted(request func() answer) (a answer) {
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if a = request(); a.err != nil || !inUse(a.status, a.body) || time.Now().After(end) {
			return a
		}
	}
}

// certain is purchase by a customer who resolves an unknown outcome. With an idempotency key it repeats the request,
// and otherwise it reads the order by its number.
func certain(ctx context.Context, client *http.Client, url, sku string, header ...string) (a answer) {
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		a = purchase(ctx, client, url, sku, header...)
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "/outcome-unknown") || time.Now().After(end) {
			return a
		}
		if slices.Contains(header, "Idempotency-Key") {
			continue
		}
		var unknown struct {
			Order string `json:"order_id"`
		}
		if err := json.Unmarshal([]byte(a.body), &unknown); err != nil {
			return a
		}
		path := "/api/v1/orders/" + unknown.Order
		switch there := insist(func() answer { return ask(ctx, client, http.MethodGet, url+path, "") }); {
		case there.err == nil && there.status == http.StatusOK:
			there.status = http.StatusCreated
			there.header.Set("Location", path)
			return there
		case there.err != nil || there.status != http.StatusNotFound: // only one that is not there may be placed again
			return a
		}
	}
}

// served is certain by a customer who insists.
func served(ctx context.Context, client *http.Client, url, sku string, header ...string) answer {
	return insist(func() answer { return certain(ctx, client, url, sku, header...) })
}

// together makes n requests at the same moment.
func together(n int, one func(i int) answer) []answer {
	answers := make([]answer, n)
	begin := make(chan struct{})
	var ready, group sync.WaitGroup
	for i := range n {
		ready.Add(1)
		group.Go(func() {
			ready.Done()
			<-begin
			answers[i] = one(i)
		})
	}
	ready.Wait()
	close(begin)
	group.Wait()
	return answers
}

// tally counts answers by status; 0 counts those that were not received.
func tally(answers []answer) map[int]int {
	counts := make(map[int]int)
	for _, a := range answers {
		if a.err != nil {
			a.status = 0
		}
		counts[a.status]++
	}
	return counts
}

const oneUnit = `{"customer_id":"c1","items":[{"sku":"a","quantity":1}]}`

// place orders one unit of the SKU a and returns the order's id.
func (r *instance) place(t *testing.T) string {
	t.Helper()
	a := served(t.Context(), http.DefaultClient, r.url, "a")
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	return orderID(t, a.body)
}
