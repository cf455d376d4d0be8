package main

import (
	"database/sql"
	"testing"
	"time"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// A SKU is oversold because updates were lost. Its orders expire as others do, which takes its
// column below zero, and the orders of another SKU in the same batch are not held up.
func TestOversoldOrdersExpireLikeOthers(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, database string, flags ...string) {
		t.Helper()
		store, db := books(t, database), testbedtest.OpenSQL(t, database)
		const rounds, orders = 3, 5
		for sku, units := range map[string]int64{"over": orders, "fine": rounds * orders} {
			if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: units}); err != nil {
				t.Fatal(err)
			}
		}
		for round := range rounds {
			if round > 0 {
				lose(t, db)
			}
			for _, sku := range []string{"over", "fine"} {
				abandon(t, store, sku, orders)
			}
		}
		start(t, flags...)
		expired(t, store, "fine", rounds*orders)
		expired(t, store, "over", rounds*orders)
		balanced(t, store, "fine")
		audits, err := store.Audit(t.Context(), "over")
		if err != nil {
			t.Fatal(err)
		}
		const lost = (rounds - 1) * orders
		if a := audits[0]; a.OK() || a.LedgerReserved != 0 || a.Reserved != -lost || a.LostUpdates() != lost || a.TwoFates != 0 {
			t.Errorf("%+v, want %d units that are lost", a, lost)
		}
		unsettled(t, db)
	})
}

// lose takes the units of all orders out of the column, as a write does that is
// computed from what was read before them.
func lose(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "UPDATE skus SET reserved = 0 WHERE sku = 'over'"); err != nil {
		t.Fatal(err)
	}
}

// unsettled fails the test if a timer is left, or is dead.
func unsettled(t *testing.T, db *sql.DB) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM timeouts").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d timers are left", n)
		}
		<-time.After(20 * time.Millisecond)
	}
}
