package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// stocked returns a store with skus.
func stocked(t testing.TB, skus ...string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: testbedtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sku := range skus {
		if _, _, err := s.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: 10_000}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Where transactions are short, a shared one gives a locked row less time, as others wait for it. The next one waits long again: the row
// may be in demand, and not locked.
func TestWaitForRowsFollowsTheTransactions(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := stocked(t, "a", "b")
		used := ""
		err := s.db.Callback().Row().Before("gorm:row").Register("test:wait", func(tx *gorm.DB) {
			if _, limit, ok := strings.Cut(tx.Statement.SQL.String(), "max_statement_time = "); ok {
				used, _, _ = strings.Cut(limit, " ")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		commit := func() error {
			b := &order.Batch{Bounded: true}
			r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c"}, TTL: time.Hour}
			for _, sku := range []string{"a", "b"} {
				b.Claims = append(b.Claims, stock.Claim{SKU: sku, Update: stock.Conditional})
				r.Order.Items = append(r.Order.Items, order.Item{SKU: sku, Quantity: 1})
			}
			b.Requests = []*order.Request{r}
			return errors.Join(s.Commit(t.Context(), b), b.Err)
		}
		wait := func() time.Duration { return time.Duration(s.rowWait.Load()) }
		for n := 0; n == 0 || wait() == longWait; n++ {
			if err := commit(); err != nil || n == 1000 { // one that takes less than half of longWait is enough
				t.Fatalf("after %d transactions: %v, %v", n, wait(), err)
			}
		}
		tx := s.db.WithContext(t.Context()).Begin()
		defer tx.Rollback()
		if err := tx.Exec("UPDATE skus SET version = version + 1 WHERE sku = 'b'").Error; err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%.3f", wait().Seconds())
		if err := commit(); !errors.Is(err, order.ErrRowSuspect) || used != want || wait() != longWait {
			t.Errorf("the row is locked: %v after %s s, want %s, and then %v", err, used, want, wait())
		}
	})
}

func TestNextWait(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct{ wait, took, want time.Duration }{
		{longWait, 20 * ms, longWait - longWait/16},
		{100 * ms, 60 * ms, 120 * ms},
		{shortWait, ms, shortWait},
		{shortWait, time.Second, longWait},
		{slowWait, ms, longWait},
	} {
		if d := nextWait(c.wait, c.took); d != c.want {
			t.Errorf("after a wait of %v at most and %v: %v, want %v", c.wait, c.took, d, c.want)
		}
	}
}

// A poll returns which rows are free. It waits for none, and sees every write to them.
func TestLookShowsFreeRowsAndVersions(t *testing.T) {
	t.Parallel()
	skus := []string{"free", "locked", "written"}
	s := stocked(t, skus...)
	look := func() map[string]bulkhead.Sight {
		t.Helper()
		seen, err := s.lookAt(t.Context(), skus)
		if err != nil || len(seen) != len(skus) {
			t.Fatal(seen, err)
		}
		return seen
	}
	for sku, now := range look() {
		if !now.Free || now.Version == 0 {
			t.Errorf("%s: %+v", sku, now)
		}
	}
	for _, sku := range []string{"locked", "written"} {
		before := look()
		tx := s.db.WithContext(t.Context()).Begin()
		defer tx.Rollback()
		if err := tx.Exec("UPDATE skus SET version = version + 1 WHERE sku = ?", sku).Error; err != nil {
			t.Fatal(err)
		}
		for other, now := range look() {
			if now.Free != (other != sku) || now.Version != before[other].Version {
				t.Errorf("%s is locked, and %s: %+v", sku, other, now)
			}
		}
		if err := tx.Commit().Error; err != nil {
			t.Fatal(err)
		}
		if now := look()[sku]; !now.Free || now.Version == before[sku].Version {
			t.Errorf("%s is free and was written to: %+v, before %+v", sku, now, before[sku])
		}
	}
}
