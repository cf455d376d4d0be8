package blackbox_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// An order that is alone takes three round trips to each server: the transaction begins with the stock row, then all else is inserted,
// and it is committed.
func TestLonelyOrderTakesThreeRoundTrips(t *testing.T) {
	t.Parallel()
	for server, database := range map[string]func(testing.TB) string{"mariadb": testbedtest.Database, "postgresql": testbedtest.Postgres} {
		for name, update := range map[string]stock.Update{"conditional": stock.Conditional, "for-update": stock.RowLock, "redis": stock.Fenced} {
			for _, bounded := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%t", server, name, bounded), func(t *testing.T) {
					t.Parallel()
					testbedtest.Steady(t, func(t testing.TB) { lonelyOrder(t, database(t), name, update, bounded) })
				})
			}
		}
	}
}

func lonelyOrder(t testing.TB, database, strategy string, update stock.Update, bounded bool) {
	t.Helper()
	var trips atomic.Int64 // one for each thing sent, as a session waits for each answer but that to its end
	s := open(t, testbedtest.Relay(t, database, func(sent []byte) {
		if end := string(sent); end != "\x01\x00\x00\x00\x01" && end != "X\x00\x00\x00\x04" {
			trips.Add(1)
		}
	}), "one")
	create(t, s, "a", strategy, 100)
	place := func() {
		t.Helper()
		b := batchOf("a", update, dlock.Fence{Token: 1, Owner: "o"}, request(1, "a"))
		b.Bounded, b.Requests[0].Key = bounded, keyed("POST /orders", order.NewID(), "")
		if err := s.Commit(t.Context(), b); err != nil || b.Requests[0].Err != nil || b.Requests[0].Order.Status != order.Pending {
			t.Fatalf("%v, %+v", err, b.Requests[0])
		}
	}
	place() // connects, and reads what never changes of the SKU
	before := trips.Load()
	place()
	if n := trips.Load() - before; n != 3 {
		t.Errorf("%d round trips, want 3", n)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 2 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// A server that was started again has closed the connections of the pool. No order fails because of that, however many they are.
func TestClosedConnectionsCostNoOrder(t *testing.T) {
	t.Parallel()
	database, raw := testbedtest.Database(t), new(handle)
	s := open(t, database, "one", raw)
	create(t, s, "a", "conditional", 100)
	pool, err := raw.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	var sessions []string
	var connections []*sql.Conn
	for range 20 {
		c, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var session string
		if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session); err != nil {
			t.Fatal(err)
		}
		sessions, connections = append(sessions, session), append(connections, c)
	}
	for _, c := range connections {
		c.Close()
	}
	admin := testbedtest.OpenSQL(t, database)
	for _, session := range sessions {
		if _, err := admin.ExecContext(t.Context(), "KILL "+session); err != nil {
			t.Fatal(err)
		}
	}
	testbedtest.Eventually(t, "the sessions have ended", func() bool {
		var n int
		err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id IN ("+
			strings.Join(sessions, ", ")+")").Scan(&n)
		return err == nil && n == 0
	})
	b := batchOf("a", stock.Conditional, dlock.Fence{}, request(1, "a"))
	if err := s.Commit(t.Context(), b); err != nil || b.Requests[0].Err != nil {
		t.Errorf("%v, %v", err, b.Requests[0].Err)
	}
}
