package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/platform/testbed"
)

func runRetry(ctx context.Context, r *Run) {
	s := r.open(ctx)
	f := s.instances(ctx, 2)
	proxy := must(testbed.NewProxy(ctx, strings.TrimPrefix(f.URLs()[0], "http://")))
	r.Defer(proxy.Close)
	e := &retryRun{
		stores: s, proxy: proxy, urls: []string{"http://" + proxy.Addr(), f.URLs()[1]}, direct: f.URLs(),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, // a client that retries nothing itself
		picture: &Picture{Title: "the reply to request 1 is lost on its way; the client sends request 2 to another instance", Legend: Legend{
			Holds: "a request with its reply, the first order", Stale: "no reply, a second order", Waits: "a request whose reply is lost",
		}},
	}
	r.Step("two instances serve; a proxy is on the way to the first one, and loses the reply to one order")
	e.warm(ctx)
	first, second, orders := e.lose(ctx, "no key", "")
	r.Effect(first.lost && second.status == http.StatusCreated && orders == 2, "no key: 1 customer wanted 1 unit, and has %d orders", orders)
	first, second, orders = e.lose(ctx, "key", "order-of-monday")
	r.Draw(e.picture)
	r.Cure(first.lost && second.status == http.StatusCreated && second.replayed && orders == 1, "key: 1 customer wanted 1 unit, and has %s", count(orders, "order"))
	e.changed(ctx)
	e.crowd(ctx)
}

// retryRun is one run of the lab.
type retryRun struct {
	*stores

	proxy   *testbed.Proxy
	urls    []string // of the instances as the customer reaches them
	direct  []string // of the instances, without the proxy
	client  *http.Client
	picture *Picture
}

// reply is what a client got.
type reply struct {
	lost     bool // there was none
	status   int
	replayed bool   // it is the reply of an earlier request
	order    string // the id of the order
}

func (r reply) String() string {
	switch {
	case r.lost:
		return "no reply"
	case r.replayed:
		return fmt.Sprintf("%d, the reply of the first request", r.status)
	}
	return fmt.Sprint(r.status)
}

// order sends an order for units of a SKU, as one attempt.
func (e *retryRun) order(ctx context.Context, url, key, sku string, units int) (reply, error) {
	body := fmt.Sprintf(`{"customer_id": "customer", "items": [{"sku": %q, "quantity": %d}]}`, sku, units)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/orders", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return reply{lost: true}, context.Cause(ctx)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{lost: true}, context.Cause(ctx)
	}
	var o struct{ ID string }
	if resp.StatusCode == http.StatusCreated {
		err = json.Unmarshal(text, &o)
	}
	return reply{status: resp.StatusCode, replayed: resp.Header.Get("Idempotent-Replayed") == "true", order: o.ID}, err
}

// warm sends an order to each instance, so that the first one of the lab does not wait for connections.
func (e *retryRun) warm(ctx context.Context) {
	e.stock(ctx, "warm", "conditional", 2)
	for _, url := range e.direct {
		if got := must(e.order(ctx, url, "", "warm", 1)); got.status != http.StatusCreated {
			fail("the first order of an instance: %v", got)
		}
	}
}

// lose sends an order whose reply is lost, and retries it at the other instance. It returns both replies, and how many orders exist.
func (e *retryRun) lose(ctx context.Context, name, key string) (first, second reply, orders int) {
	sku, customer := "phone-"+strings.ReplaceAll(name, " ", "-"), name+": client"
	e.stock(ctx, sku, "conditional", 10)
	dropped := e.proxy.Dropped()
	e.proxy.DropReply("POST /api/v1/orders")
	send := func(url, what string) reply {
		at := time.Now()
		got := must(e.order(ctx, url, key, sku, 1))
		kind := Holds
		if got.lost {
			kind = Waits
		}
		e.picture.Span(customer, at, time.Now(), kind, what)
		e.picture.Mark(customer, time.Now(), kindOf(!got.lost), fmt.Sprintf("%s: %v", what, got))
		e.r.Step("%s sends %s: %v", customer, what, got)
		return got
	}
	first = send(e.urls[0], "request 1")
	if got := e.proxy.Dropped() - dropped; got != 1 {
		fail("the proxy lost %d replies, not 1", got)
	}
	second = send(e.urls[1], "request 2")
	return first, second, e.count(ctx, name, sku)
}

// count returns how many orders of a SKU exist, and draws them.
func (e *retryRun) count(ctx context.Context, name, sku string) int {
	_, fates := fatesOf(ctx, e.records, sku)
	for i, f := range fates {
		o := must(e.records.Order(ctx, f.OrderID, ""))
		e.picture.Mark(name+": orders", o.CreatedAt, kindOf(i == 0), fmt.Sprintf("order %d is stored", i+1))
	}
	e.r.Step("%s: the database has %s of the customer", name, count(len(fates), "order"))
	e.r.Measure("orders after one retry: "+name, float64(len(fates)), "orders")
	return len(fates)
}

// changed sends the key of the stored order with another order.
func (e *retryRun) changed(ctx context.Context) {
	got := must(e.order(ctx, e.urls[1], "order-of-monday", "phone-key", 2))
	e.r.Step("key: client sends the same key with 2 units in place of 1: %v", got)
	e.r.Cure(got.status == http.StatusUnprocessableEntity, "key: the same key with another order is refused with status %d", got.status)
}

// crowd sends one order many times at once, to both instances.
func (e *retryRun) crowd(ctx context.Context) {
	const sku = "phone-crowd"
	e.stock(ctx, sku, "conditional", 100)
	replies, errs := make([]reply, e.r.Size(8, 40)), make([]error, e.r.Size(8, 40))
	var group sync.WaitGroup
	for i := range replies {
		group.Go(func() { replies[i], errs[i] = e.order(ctx, e.direct[i%2], "order-of-the-crowd", sku, 1) })
	}
	group.Wait()
	check(errors.Join(errs...))
	_, fates := fatesOf(ctx, e.records, sku)
	named := make(map[string]bool)
	for _, got := range replies {
		named[got.order] = true
	}
	one := len(named) == 1 && !named[""]
	e.r.Step("crowd: %d requests with one key arrive at once, at both instances: %s", len(replies), count(len(fates), "order"))
	e.r.Measure(fmt.Sprintf("orders after %d requests with one key at once", len(replies)), float64(len(fates)), "orders")
	e.r.Cure(len(fates) == 1 && one, "crowd: %d requests at once are %s, and their replies name %d", len(replies), count(len(fates), "order"), len(named))
}
