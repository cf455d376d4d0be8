package order_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// retries counts the retries that an observer receives.
type retries struct {
	mu      sync.Mutex
	reasons []error // guarded by mu
	placed  int     // guarded by mu
}

func (r *retries) Committing(context.Context, int) {}

func (r *retries) Waited(context.Context, time.Duration, int) {}

func (r *retries) Placed(context.Context, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placed++
}

func (r *retries) Retried(_ context.Context, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, reason)
}

// setup returns a service on SQLite whose SKUs a and b have ten units each, sold
// by the strategy.
func setup(t *testing.T, s stock.Strategy, c order.Config) (*order.Service, *sqlstore.Store) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "shop.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sku := range []string{"a", "b"} {
		if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: s.Name, OnHand: 10}); err != nil {
			t.Fatal(err)
		}
	}
	return order.NewService(store, stock.NewStrategies(stock.Lockers{}).With(s), c), store
}

// bothWays runs f for orders that are committed one by one, and for those that are committed
// together.
func bothWays(t *testing.T, f func(t *testing.T, cohort bool)) {
	t.Helper()
	for _, cohort := range []bool{false, true} {
		t.Run(map[bool]string{false: "alone", true: "cohort"}[cohort], func(t *testing.T) {
			t.Parallel()
			f(t, cohort)
		})
	}
}

func conditional(t *testing.T) stock.Strategy {
	t.Helper()
	s, err := stock.NewStrategies(stock.Lockers{}).Lookup("conditional")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func units(quantity int64, skus ...string) []order.Item {
	var items []order.Item
	for _, sku := range skus {
		items = append(items, order.Item{SKU: sku, Quantity: quantity})
	}
	return items
}

// exact fails the test unless the invariants hold and so many units of sku were accepted.
func exact(t *testing.T, store *sqlstore.Store, sku string, accepted int64) {
	t.Helper()
	audits, err := store.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Accepted() != accepted {
		t.Errorf("%s: %d accepted, want %d: %+v %q", sku, a.Accepted(), accepted, a, a.Broken())
	}
}

func isShort(err error) bool {
	_, ok := errors.AsType[*stock.ShortageError](err)
	return ok
}
