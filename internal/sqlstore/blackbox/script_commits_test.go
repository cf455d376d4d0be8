package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// PostgreSQL commits with the insertions, and the reply to all of it is lost. An order that is alone, and those of a shared transaction, are
// found and placed once, although the first attempt has taken the last units.
func TestLostReplyToInsertionsThatCommit(t *testing.T) {
	t.Parallel()
	database, proxy := behindProxy(t, testbedtest.Postgres(t))
	s := opened(t, sqlstore.Config{URL: database, Instance: "one", Connections: 4})
	for n, keys := range []int{1, 3} {
		var group []*order.Batch
		for i := range keys {
			sku := fmt.Sprint("s", n, i)
			create(t, s, sku, "conditional", 1)
			b := batchOf(sku, stock.Conditional, dlock.Fence{}, request(1, sku))
			b.Requests[0].Key = keyed("POST /orders", sku, "")
			group = append(group, b)
		}
		proxy.DropReply("COMMIT")
		if err := s.Commit(t.Context(), group...); err != nil || proxy.Dropped() != n+1 {
			t.Fatalf("%v; %d replies were dropped, want %d", err, proxy.Dropped(), n+1)
		}
		for i, b := range group {
			if b.Err != nil || b.Requests[0].Err != nil || b.Requests[0].Order.Status != order.Pending {
				t.Errorf("%v, %+v", b.Err, b.Requests[0])
			}
			balanced(t, s, fmt.Sprint("s", n, i), 1, 0)
		}
	}
}

// The request ends when PostgreSQL has committed with the insertions: the order is placed.
func TestContextEndsAfterInsertionsThatCommit(t *testing.T) {
	t.Parallel()
	database, g := testbedtest.Postgres(t), newGate(gate{after: "ledger"})
	two := open(t, database, "two")
	create(t, two, "a", "conditional", 10)
	s := open(t, database, "gated", g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, result := request(1, "a"), make(chan error, 1)
	go func() { result <- s.Commit(ctx, batchOf("a", stock.Conditional, dlock.Fence{}, r)) }()
	wait(t, "the insertions", g.reached)
	balanced(t, two, "a", 1, 0)
	cancel()
	close(g.opened)
	if err := <-result; err != nil || r.Err != nil || !r.Answered {
		t.Errorf("%v, %+v", err, r)
	}
}

// The insertions with which PostgreSQL would commit wait for a key. They are the victim of a deadlock, or their session is ended. The
// order is tried again, and placed once.
func TestInsertionsThatCommitAreRepeated(t *testing.T) {
	t.Parallel()
	for _, deadlock := range []bool{true, false} {
		t.Run(fmt.Sprint("deadlock=", deadlock), func(t *testing.T) {
			t.Parallel()
			database, g := testbedtest.Postgres(t), newGate(gate{before: "INTO ledger"})
			one := open(t, database, "one")
			create(t, one, "a", "conditional", 10)
			db := testbedtest.OpenSQL(t, database)
			execute := func(on interface {
				ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
			}, statement string,
			) {
				t.Helper()
				if _, err := on.ExecContext(t.Context(), statement); err != nil {
					t.Error(err)
				}
			}
			execute(db, "ALTER DATABASE "+database[strings.LastIndex(database, "/")+1:]+" SET deadlock_timeout = '100ms'")
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			execute(tx, "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL deadlock_timeout = '1h'") // the other one is the victim
			execute(tx, "INSERT INTO idempotency_keys (customer_id, route, idem_key, hash, status, location, body, created_at) "+
				"VALUES ('c1', 'POST /orders', 'key', '', 0, '', '', 0)")
			s, r, result := open(t, database, "gated", g), request(1, "a"), make(chan error, 1)
			r.Key = keyed("POST /orders", "key", "")
			go func() { result <- s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r)) }()
			wait(t, "the order to have the row of its SKU", g.reached)
			if deadlock {
				var updated sync.WaitGroup
				updated.Go(func() { execute(tx, "UPDATE skus SET version = version WHERE sku = 'a'") })
				lockedOut(t, db)
				close(g.opened)
				updated.Wait()
			} else {
				close(g.opened)
				execute(db, fmt.Sprint("SELECT pg_terminate_backend(", lockedOut(t, db), ")"))
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
			if err := <-result; err != nil || r.Err != nil || r.Order.Status != order.Pending {
				t.Errorf("%v, %+v", err, r)
			}
			balanced(t, one, "a", 1, 0)
		})
	}
}

// lockedOut returns the number of a session that waits for a lock.
func lockedOut(t *testing.T, db *sql.DB) (pid int) {
	t.Helper()
	const query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	testbedtest.Eventually(t, "a session waits for a lock", func() bool {
		err := db.QueryRowContext(t.Context(), query).Scan(&pid)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
		return err == nil
	})
	return pid
}
