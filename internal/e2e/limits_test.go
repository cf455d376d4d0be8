package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The requests, open orders and units of one customer are bounded over all instances, without effect on other
// customers. Payments and cancellations are never limited.
func TestLimitsOfACustomer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client := customers(t)
	rated := s.three(t, "--customer-rate", "1")
	rated[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)
	for _, r := range rated { // who has just begun may have no permit yet, and who asks for one again asks at that rate
		testbedtest.Eventually(t, "orders are placed", func() bool { return purchase(t.Context(), client, r.url, "a").status == http.StatusCreated })
	}
	paths, late := []string(nil), answer{}
	testbedtest.Eventually(t, "30 customers in one are too many, and not all are", func() bool { // unless nobody has a permit for a moment
		paths, late = nil, answer{}
		<-time.After(3 * time.Second) // until all may come at once that ever may
		for _, a := range together(30, func(i int) answer { return purchase(t.Context(), client, rated[i%3].url, "a") }) {
			switch {
			case a.status == http.StatusCreated:
				paths = append(paths, a.header.Get("Location"))
			case a.status == http.StatusTooManyRequests && strings.Contains(a.body, "rate-limited"):
				late = a
			case !later(a.status, a.body):
				t.Error(a)
			}
		}
		return len(paths) >= 2 && late.status != 0
	})
	if h := late.header; h.Get("Retry-After") == "" || !strings.HasPrefix(h.Get("RateLimit-Policy"), `"customer";q=`) || !strings.Contains(h.Get("RateLimit"), `"customer";r=0`) {
		t.Errorf("a 429 with the header %v", h)
	}
	rated[0].want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, "c1", "c2", 1))
	for i, path := range paths {
		end, body := []string{"/pay", "/cancel"}[i%2], []string{`{"payment_id":"p1"}`, ""}[i%2]
		rated[i%3].want(t, http.StatusOK, "POST", path+end, body)
	}

	capped := s.three(t, "--max-open-orders", "2")
	capped[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/few", `{"on_hand":1000,"strategy":"redis","purchase_limit":3}`)
	open := func(customer, sku string, want, each int, why string) {
		t.Helper()
		body := fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":%q,"quantity":%d}]}`, customer, sku, each)
		answers := together(12, func(i int) answer {
			return insist(func() answer {
				return ask(t.Context(), client, http.MethodPost, capped[i%3].url+"/api/v1/orders", body)
			})
		})
		if got := tally(answers); got[http.StatusCreated] != want || got[http.StatusConflict] != len(answers)-want {
			t.Errorf("answers by status: %v, want %d orders: %v", got, want, answers)
		}
		for _, a := range answers {
			if a.status == http.StatusConflict && !strings.Contains(a.body, why) {
				t.Error(a)
			}
		}
	}
	open("c3", "a", 2, 1, "open-orders-limit")
	open("c4", "few", 1, 2, "purchase-limit")
	balancedBut(t, s, "few", 2)
}

// Two hundred clients send a byte per second, of their headers or of a body. They are cut off,
// and customers do not notice them.
func TestSlowClientsAreCut(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	const (
		slow    = 200
		headers = "POST /api/v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	)
	var cut atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for i := range slow {
		sent := headers + "X-Slow: "
		if i%2 == 0 {
			sent = headers + "Content-Length: 1000\r\n\r\n"
		}
		group.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			_, _ = io.WriteString(conn, sent) // who comes to write too late has been cut off
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = io.Copy(io.Discard, conn)
			}()
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					_, _ = conn.Write([]byte(" "))
				case <-gone:
					if ctx.Err() == nil {
						cut.Add(1)
					}
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for placed := 0; ; placed++ {
		select {
		case <-done:
			if cut.Load() != slow || placed == 0 {
				t.Errorf("%d of %d were cut off, while %d orders were placed", cut.Load(), slow, placed)
			}
			return
		case <-time.After(10 * time.Millisecond):
			r.place(t)
		}
	}
}

// balancedBut audits a SKU of which so many units are reserved.
func balancedBut(t *testing.T, s stage, sku string, reserved int64) {
	t.Helper()
	if a := audited(t, books(t, s.database), sku); a.Reserved != reserved {
		t.Errorf("the books of %s: %v, %d reserved, want %d", sku, a.Broken(), a.Reserved, reserved)
	}
}
