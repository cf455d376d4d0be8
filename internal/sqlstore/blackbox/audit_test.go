package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// An audit of large books takes longer than any other statement may. The table is one here that
// gives its rows late.
func TestAuditTakesItsTime(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	s, db := open(t, url, "one"), rawDB(t, url)
	create(t, s, "a", "conditional", 3)
	for _, statement := range []string{
		"RENAME TABLE skus TO quick",
		"CREATE VIEW skus AS SELECT * FROM quick WHERE SLEEP(4) = 0", // the limit of others is 3 s
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if audits, err := s.Audit(t.Context(), "a"); err != nil || len(audits) != 1 || !audits[0].OK() || audits[0].Stocked != 3 {
		t.Fatalf("%+v, %v", audits, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Audit(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want the end of the context", err)
	}
}

// An order that holds its units long after its expiry is stuck, although all figures agree. One that has
// just expired, is paid, cancelled or queued is not.
func TestAuditReportsOverdueOrders(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		create(t, s, "b", "conditional", 10)
		create(t, s, "c", "conditional", 10)
		place := func(ttl time.Duration, skus ...string) string {
			t.Helper()
			r := request(1, skus...)
			r.TTL = ttl
			var claims []stock.Claim
			for _, sku := range skus {
				claims = append(claims, claim(sku, stock.Conditional, dlock.Fence{})...)
			}
			if err := errors.Join(s.Commit(ctx, &order.Batch{Claims: claims, Requests: []*order.Request{r}}), r.Err); err != nil {
				t.Fatal(err)
			}
			return r.Order.ID
		}
		long := -stock.OverdueGrace - time.Minute
		place(long, "a", "b")
		place(long, "a")
		place(0, "a", "c")
		place(time.Hour, "c")
		cancelled := place(time.Hour, "c")
		if _, _, err := s.Settle(ctx, order.Target{ID: cancelled}, order.Cancelled, ""); err != nil {
			t.Fatal(err)
		}
		for sku, want := range map[string]int64{"a": 2, "b": 1, "c": 0} {
			a := auditOf(t, s, sku)
			if a.Overdue != want || a.OK() != (want == 0) || !a.LedgerOK() {
				t.Errorf("%s: %+v, %q; want %d overdue", sku, a, a.Broken(), want)
			}
		}
		if audits, err := s.Audit(ctx, ""); err != nil || len(audits) != 3 || audits[0].Overdue != 2 || audits[1].Overdue != 1 {
			t.Errorf("of all SKUs: %+v, %v", audits, err)
		}
	})
}

// slowly replaces the table of SKUs by one that takes minutes to read, and returns how many sessions read it. A server
// notices by itself that a client of SLEEP has gone; of one that computes it does not.
func slowly(t *testing.T, s *sqlstore.Store, db *sql.DB) (reading func() int) {
	t.Helper()
	create(t, s, "a", "conditional", 3)
	for _, statement := range []string{
		"RENAME TABLE skus TO quick",
		"CREATE VIEW skus AS SELECT * FROM quick WHERE BENCHMARK(500000000, SHA2(sku, 256)) = 0",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() (n int) {
		t.Helper()
		again, err := true, error(nil)
		for again {
			err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND command <> 'Sleep' AND id <> CONNECTION_ID()").Scan(&n)
			e, ok := errors.AsType[*mysql.MySQLError](err)
			again = ok && e.Number == 3854 // MySQL cannot show a statement of another test that has an id in bytes
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// ended waits until nobody reads, which must not take as long as the table does.
func ended(t *testing.T, what string, reading func() int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); reading() > 0; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d statements go on in the database after %s", reading(), what)
		}
	}
}

// An audit ends in the database when nobody waits for it any more, and an instance runs one at a time.
func TestAuditEndsWithItsContext(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	s, db := open(t, url, "one"), rawDB(t, url)
	reading := slowly(t, s, db)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var audits sync.WaitGroup
	for range 5 {
		audits.Go(func() {
			if _, err := s.Audit(ctx, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want the end of the context", err)
			}
		})
	}
	for reading() == 0 {
		<-time.After(time.Millisecond)
	}
	<-time.After(200 * time.Millisecond) // for others, who must not begin
	if n := reading(); n != 1 {
		t.Errorf("%d audits at the same time, want 1", n)
	}
	cancel()
	audits.Wait()
	ended(t, "a cancellation", reading)

	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Audit(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want the end of the context", err)
	}
	ended(t, "a deadline", reading)
}

// The database ends an audit at its deadline even if its instance has died. It ends other statements after the three
// seconds for which a client reads.
func TestServerEndsStatements(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	direct := open(t, url, "direct")
	behind, p := behindProxy(t, url)
	s := opened(t, sqlstore.Config{URL: behind, Instance: "dies"})
	reading := slowly(t, direct, rawDB(t, url))
	for name, read := range map[string]func(context.Context) error{
		"an audit": func(ctx context.Context) error { _, err := s.Audit(ctx, ""); return err },
		"levels":   func(ctx context.Context) error { _, err := s.Levels(ctx, "", 10); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		result := make(chan error, 1)
		go func() { result <- read(ctx) }()
		for reading() == 0 {
			<-time.After(time.Millisecond)
		}
		p.BlackHole() // what the instance says arrives no more
		if err := <-result; err == nil {
			t.Errorf("%s came to an end", name)
		}
		cancel()
		ended(t, "the death of the instance that wanted "+name, reading)
		if err := p.Pass(); err != nil {
			t.Fatal(err)
		}
	}
}
