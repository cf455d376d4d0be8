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

	"example.com/shop/internal/httpapi/apiclient"
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

// TestGeneratedClientRunsTheLifeOfAnOrder against an instance, by nothing but the description of the API. `make api-client` does
// the same in TypeScript.
func TestGeneratedClientRunsTheLifeOfAnOrder(t *testing.T) {
	t.Parallel()
	c, err := apiclient.NewClientWithResponses(start(t, "--database", sqliteURL(t)).url)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	sku, err := c.CreateSKUWithResponse(ctx, "ticket", apiclient.NewSKU{OnHand: 2, Strategy: "conditional"})
	if err != nil || sku.JSON201 == nil || sku.JSON201.Available != 2 {
		t.Fatalf("create: %v, %s", err, sku.Body)
	}

	id := placeTwice(t, c)
	short, err := c.PlaceOrderWithResponse(ctx, nil, apiclient.NewOrder{CustomerID: "c2", Items: []apiclient.NewItem{{SKU: "ticket", Quantity: 2}}})
	if err != nil || short.ApplicationProblemJSON409 == nil {
		t.Fatalf("place what there is not: %v, %s", err, short.Body)
	}
	problem, err := short.ApplicationProblemJSON409.ValueByDiscriminator()
	if p, ok := problem.(apiclient.OutOfStockProblem); err != nil || !ok || len(p.Shortages) != 1 || p.Shortages[0].Available != 1 {
		t.Errorf("problem %T %v, %v", problem, problem, err)
	}

	paid, err := c.PayOrderWithResponse(ctx, id, nil, apiclient.Payment{PaymentID: "p1"})
	if err != nil || paid.JSON200 == nil || paid.JSON200.Status != apiclient.CONFIRMED {
		t.Fatalf("pay: %v, %s", err, paid.Body)
	}
	cancelled, err := c.CancelOrderWithResponse(ctx, id, nil)
	if err != nil || cancelled.ApplicationProblemJSON409 == nil {
		t.Fatalf("cancel what is paid: %v, %s", err, cancelled.Body)
	}
	problem, err = cancelled.ApplicationProblemJSON409.ValueByDiscriminator()
	if p, ok := problem.(apiclient.OrderStateConflictProblem); err != nil || !ok || p.OrderID != id || p.State != "CONFIRMED" {
		t.Errorf("problem %T %v, %v", problem, problem, err)
	}

	o, err := c.GetOrderWithResponse(ctx, id, nil)
	if err != nil || o.JSON200 == nil || o.JSON200.Status != apiclient.CONFIRMED {
		t.Errorf("read: %v, %s", err, o.Body)
	}
	moved, err := c.ListMovementsWithResponse(ctx, id)
	if err != nil || moved.JSON200 == nil || len(moved.JSON200.Movements) != 2 || moved.JSON200.Movements[1].Movement != apiclient.CONFIRM {
		t.Errorf("movements: %v, %s", err, moved.Body)
	}
	audit, err := c.RunAuditWithResponse(ctx, nil)
	if err != nil || audit.JSON200 == nil || !audit.JSON200.Ok || audit.JSON200.Skus[0].Sold != 1 {
		t.Errorf("audit: %v, %s", err, audit.Body)
	}
}

// placeTwice sends an order twice with one key. It returns the id of the order.
func placeTwice(t *testing.T, c *apiclient.ClientWithResponses) (id string) {
	t.Helper()
	key := "cart-17"
	for _, replayed := range []string{"", "true"} {
		r, err := c.PlaceOrderWithResponse(t.Context(), &apiclient.PlaceOrderParams{IdempotencyKey: &key},
			apiclient.NewOrder{CustomerID: "c1", Items: []apiclient.NewItem{{SKU: "ticket", Quantity: 1}}})
		if err != nil || r.JSON201 == nil || r.JSON201.Status != apiclient.PENDING {
			t.Fatalf("place: %v, %s", err, r.Body)
		}
		if got := r.HTTPResponse.Header.Get("Idempotent-Replayed"); got != replayed || id != "" && r.JSON201.ID != id {
			t.Errorf("order %s after %q: status %s, replayed %q", r.JSON201.ID, id, http.StatusText(r.StatusCode()), got)
		}
		id = r.JSON201.ID
	}
	return id
}
