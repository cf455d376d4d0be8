package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// books opens the database of a test alongside its instances. Orders that are committed
// there have timers, of which nobody is notified.
func books(t *testing.T, url string) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "test", Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	timers, err := store.Timers()
	if err != nil {
		t.Fatal(err)
	}
	q, err := timeout.New(timers, memindex.New(memindex.Config{}), timeout.Config{Canary: true})
	if err != nil {
		t.Fatal(err)
	}
	return store.WithTimers(q)
}

// expired waits until every order of the SKU has released its units. It checks that no order was lost, settled twice,
// or expired early. It returns the greatest delay.
func expired(t *testing.T, store *sqlstore.Store, sku string, orders int) (latest time.Duration) {
	t.Helper()
	var fates []sqlstore.Fate
	released := func(f sqlstore.Fate) bool { return f.Releases > 0 }
	for end := time.Now().Add(2*time.Minute + time.Duration(orders)*10*time.Millisecond); ; {
		began := time.Now()
		var err error
		if _, fates, err = store.Fates(t.Context(), sku); err != nil {
			t.Fatal(err)
		}
		if len(fates) == orders && !slices.ContainsFunc(fates, func(f sqlstore.Fate) bool { return !released(f) }) || time.Now().After(end) {
			break
		}
		<-time.After(20*time.Millisecond + 10*time.Since(began)) // a look is work for the database as well
	}
	var late []time.Duration
	lost, double, early := 0, 0, 0
	for _, f := range fates {
		if !released(f) {
			lost++
			continue
		}
		if f.Twice() {
			double++
		}
		if f.ReleasedAt.Before(f.ExpiresAt) {
			early++
		}
		late = append(late, f.ReleasedAt.Sub(f.ExpiresAt))
	}
	t.Logf("%s: orders %d, expired %d, lost %d, double %d, early %d; lateness p50 %v, p99 %v", sku, len(fates), len(late), lost, double, early, quantile(late, 50), quantile(late, 99))
	if len(fates) != orders || lost+double+early > 0 {
		t.Errorf("want %d orders of %s that have expired once each, in time", orders, sku)
	}
	return quantile(late, 100)
}

// balanced audits a SKU.
func balanced(t *testing.T, store *sqlstore.Store, sku string) {
	t.Helper()
	audits, err := store.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Reserved != 0 {
		t.Errorf("the books of %s: %v, %d reserved", sku, a.Broken(), a.Reserved)
	}
}

// quantile sorts d and returns the least that p percent do not exceed.
func quantile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)*p+99)/100-1].Round(100 * time.Microsecond)
}

// buy places an order of one unit, and returns the status of the answer. It may be called
// in any goroutine.
func buy(ctx context.Context, url, sku string) (status int, answer string, err error) {
	a := served(ctx, http.DefaultClient, url, sku)
	return a.status, a.body, a.err
}

// abandon stores orders of one unit that have expired already.
func abandon(t *testing.T, store *sqlstore.Store, sku string, orders int) {
	t.Helper()
	for orders > 0 {
		batch := make([]*order.Request, min(orders, 500))
		for i := range batch { // without a TTL
			batch[i] = &order.Request{
				Order: order.Order{ID: order.NewID(), CustomerID: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}}},
			}
		}
		if err := store.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.RowLock}}, Requests: batch}); err != nil {
			t.Fatal(err)
		}
		orders -= len(batch)
	}
}
