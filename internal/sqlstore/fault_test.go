package sqlstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// proxied returns a store that reaches its database through a proxy.
func proxied(t *testing.T, connections int) (*sqlstore.Store, *testbed.Proxy) {
	t.Helper()
	db := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	p := testbedtest.StartProxy(t, db.Addr())
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{
		URL: strings.Replace(db.URL(), db.Addr(), p.Addr(), 1), Instance: "one", Connections: connections,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, p
}

// The database commits and the reply is lost. The order is placed, paid and
// answered once; a restock, which cannot be recognised, says that it does not
// know.
func TestLostReplyToCommit(t *testing.T) {
	s, proxy := proxied(t, 4)
	ctx := t.Context()
	create(t, s, "a", "conditional", 10)

	proxy.DropReply("COMMIT")
	r := request(1, "a")
	if err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r}); err != nil || r.Err != nil {
		t.Fatalf("place: %v, %v", err, r.Err)
	}
	proxy.DropReply("COMMIT")
	if o, _, err := s.Settle(ctx, r.Order.ID, order.Confirmed, "p1"); err != nil || o.Status != order.Confirmed {
		t.Fatalf("pay: %v, %v", o.Status, err)
	}
	proxy.DropReply("COMMIT")
	if _, err := s.Restock(ctx, "a", 1); !errors.Is(err, order.ErrOutcomeUnknown) {
		t.Errorf("restock: %v, want ErrOutcomeUnknown", err)
	}
	if n := proxy.Dropped(); n != 3 {
		t.Fatalf("%d replies were dropped, want 3", n)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Sold != 1 || a.Open != 0 || a.Stocked != 11 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// A database that is gone, or silent, is an error within the deadline and
// leaves nothing behind.
func TestDatabaseAway(t *testing.T) {
	s, proxy := proxied(t, 4)
	create(t, s, "a", "conditional", 10)
	place := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{request(1, "a")})
	}
	proxy.Refuse()
	if err := place(); !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("refused: %v", err)
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	proxy.BlackHole()
	start := time.Now()
	if err := place(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent: %v", err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("a deadline of 2 s took %v", d)
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 0 {
		t.Errorf("%+v %q", a, a.Broken())
	}
	if err := place(); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}
