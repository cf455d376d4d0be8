package blackbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// counted counts the statements that read what hardly ever changes: whose a key is, and how a SKU is sold.
type counted struct {
	*sqlstore.Store

	keys, levels atomic.Int64
}

func (c *counted) Key(ctx context.Context, prefix string) (identity.Record, error) {
	c.keys.Add(1)
	return c.Store.Key(ctx, prefix)
}

func (c *counted) Level(ctx context.Context, sku string) (stock.Level, error) {
	c.levels.Add(1)
	return c.Store.Level(ctx, sku)
}

// TestReadsPerOrder: before its transaction an order reads nothing from the database that an earlier one has read: the key
// once, the SKU once. Without memory it is the key each time.
func TestReadsPerOrder(t *testing.T) {
	t.Parallel()
	const orders = 50
	for name, c := range map[string]struct {
		keep time.Duration
		keys int64
	}{"remembered": {time.Minute, 2}, "forgotten": {time.Nanosecond, 2 * orders}} {
		store := &counted{Store: newStore(t)}
		known, err := identity.New(store, identity.Config{Keep: c.keep})
		if err != nil {
			t.Fatal(err)
		}
		strategies := stock.NewStrategies(stock.Lockers{})
		if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "a", Strategy: "conditional", OnHand: 1000}); err != nil {
			t.Fatal(err)
		}
		s := newHandler(t, httpapi.Config{Orders: order.NewService(store, strategies, order.Config{}), Strategies: strategies, Identity: known})
		for _, customer := range []string{"ann", "ben"} {
			text, _, err := known.Create(t.Context(), identity.NewKey{Customer: customer})
			if err != nil {
				t.Fatal(err)
			}
			for range orders {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/orders",
					strings.NewReader(fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":"a","quantity":1}]}`, customer)))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+text)
				if status, _, body := s.do(r); status != http.StatusCreated {
					t.Fatalf("%d: %s", status, body)
				}
			}
		}
		keys, levels := store.keys.Load(), store.levels.Load()
		t.Logf("%s: %d orders of two customers read keys %d times, and how the SKU is sold %d times", name, 2*orders, keys, levels)
		if keys != c.keys || levels != 1 {
			t.Errorf("%s: keys were read %d times, want %d; the SKU %d times, want 1", name, keys, c.keys, levels)
		}
	}
}
