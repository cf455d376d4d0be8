package blackbox_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// A row that a foreign session keeps locked delays the others of a shared transaction briefly, once. From then on its
// batch is put aside at once.
func TestSharedTransactionLeavesLockedRows(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		raw := new(handle)
		s := open(t, testbedtest.Database(t), "one", raw)
		for _, sku := range []string{"a", "b", "c"} {
			create(t, s, sku, "conditional", 100)
		}
		unlock := lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = 'b'")
		defer unlock()
		for i := range 3 {
			began := time.Now()
			var group []*order.Batch
			for _, sku := range []string{"a", "b", "c"} {
				group = append(group, batchOf(sku, stock.Conditional, dlock.Fence{}, request(1, sku)))
			}
			if err := s.Commit(t.Context(), group...); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(group[1].Err, order.ErrCommitAlone) || group[0].Err != nil || group[2].Err != nil || !group[0].Requests[0].Answered {
				t.Errorf("%d: %v, %v, %v", i, group[0].Err, group[1].Err, group[2].Err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%d: the others waited %v", i, took)
			}
		}
		if n := auditOf(t, s, "b").Open; n != 0 {
			t.Errorf("%d orders of the locked SKU", n)
		}
	})
}

// An order that is alone waits for a locked row no longer than others do, whatever writes the row. Then the row is suspect.
func TestLonelyOrderLeavesALockedRow(t *testing.T) {
	t.Parallel()
	for server, database := range map[string]func(testing.TB) string{"mariadb": testbedtest.Database, "postgresql": testbedtest.Postgres} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				url := database(t)
				s := open(t, url, "one")
				for _, sku := range []string{"a", "b", "c"} {
					create(t, s, sku, "conditional", 100)
				}
				tx, err := testbedtest.OpenSQL(t, url).BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				lock := "UPDATE skus SET version = version + 1"
				if server == "postgresql" {
					lock = "SET LOCAL idle_in_transaction_session_timeout = 0; " + lock
				}
				if _, err := tx.ExecContext(t.Context(), lock); err != nil {
					t.Fatal(err)
				}
				for sku, update := range map[string]stock.Update{"a": stock.Conditional, "b": stock.RowLock, "c": stock.Fenced} {
					b, began := batchOf(sku, update, dlock.Fence{Token: 1, Owner: "o"}, request(1, sku)), time.Now()
					b.Bounded = true
					if err := s.Commit(t.Context(), b); err != nil || !errors.Is(b.Err, order.ErrRowSuspect) || b.Requests[0].Answered {
						t.Errorf("%s: %v, %v", sku, err, b.Err)
					}
					if took := time.Since(began); took > 1500*time.Millisecond { // a session waits 2 s
						t.Errorf("%s: it waited %v", sku, took)
					}
				}
			})
		})
	}
}

// buys returns a batch of one order of one unit for a customer.
func buys(customer, sku string, w stock.Update) *order.Batch {
	b := batchOf(sku, w, dlock.Fence{}, request(1, sku))
	b.Requests[0].Order.CustomerID = customer
	return b
}

// threeBatches returns batches of three customers, the last of which uses a key.
func threeBatches() (few, plain, kept *order.Batch) {
	kept = buys("c3", "plain", stock.Conditional)
	kept.Requests[0].Key = keyed("POST /orders", order.NewID(), "")
	return buys("c1", "few", stock.Conditional), buys("c2", "plain", stock.Conditional), kept
}

// allPlaced fails the test unless every batch has placed its order.
func allPlaced(t testing.TB, what string, batches ...*order.Batch) {
	t.Helper()
	for _, b := range batches {
		if b.Err != nil || !b.Requests[0].Answered || b.Requests[0].Err != nil {
			t.Errorf("%s: %v; %v", what, b.Err, b.Requests[0].Err)
		}
	}
}

// Other foreign locks stop only those who need them: the row of a customer with a limit, a key that is being stored.
func TestSharedTransactionLeavesWhatIsLocked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		raw := new(handle)
		s := open(t, testbedtest.Database(t), "one", raw)
		limited(t, s, "few", "conditional", 100, 50)
		create(t, s, "plain", "conditional", 100)
		few, plain, kept := threeBatches()
		if err := s.Commit(t.Context(), few, plain, kept); err != nil {
			t.Fatal(err)
		}
		allPlaced(t, "nothing is locked", few, plain, kept)

		unlock := lockRow(t, raw.db, "SELECT * FROM customer_usage WHERE customer_id = 'c1'")
		few, plain, kept = threeBatches()
		if err := s.Commit(t.Context(), few, plain, kept); err != nil || !errors.Is(few.Requests[0].Err, order.ErrCustomerBusy) {
			t.Errorf("a locked customer: %v, %v", err, few.Requests[0].Err)
		}
		allPlaced(t, "a locked customer", plain, kept)
		unlock()

		few, plain, kept = threeBatches()
		tx := raw.db.Begin()
		defer tx.Rollback()
		if err := tx.Exec("INSERT INTO idempotency_keys (customer_id, route, idem_key, hash, status, location, body, created_at) VALUES ('c1', 'POST /orders', ?, '', 0, '', '', 0)",
			kept.Requests[0].Key.Scope.Key).Error; err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), few, plain, kept); err != nil || !errors.Is(kept.Err, order.ErrCommitAlone) {
			t.Errorf("a key that is being stored: %v, %v", err, kept.Err)
		}
		allPlaced(t, "a key that is being stored", few, plain)
		tx.Rollback()
	})
}
