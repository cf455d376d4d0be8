package e2e_test

import (
	"net/http"
	"testing"

	"example.com/shop/internal/httpapi/apiclient"
)

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
