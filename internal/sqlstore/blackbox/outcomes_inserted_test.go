package blackbox_test

import (
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A session that has lost its client still has the rows of an order, which take the last unit, and commits. The repetition of the
// order waits for the end of that session, and must not return sold out.
func TestRepetitionWaitsForTheSessionOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "a", "conditional", 1)
		r := request(1, "a")
		r.Uncertain = true
		tx, err := testbedtest.OpenSQL(t, url).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"UPDATE skus SET reserved = 1, version = version + 1 WHERE sku = 'a'",
			"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES ('" + r.Order.ID + "', 'c1', 'PENDING', '', 1, 4000000000000000)",
			"INSERT INTO order_lines (order_id, sku, quantity) VALUES ('" + r.Order.ID + "', 'a', 1)",
			"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES ('a', '" + r.Order.ID + "', 'RESERVE', 1, 0, 1, 0, '', 1)",
		} {
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		commit := time.AfterFunc(300*time.Millisecond, func() { _ = tx.Commit() })
		defer commit.Stop()
		if err := commitAlone(t, s, conditionally("a"), r); err != nil || r.Err != nil || !r.Answered || r.Order.Status != order.Pending {
			t.Errorf("%v, %v, %+v", err, r.Err, r.Order)
		}
		balanced(t, s, "a", 1, 0)
	})
}
