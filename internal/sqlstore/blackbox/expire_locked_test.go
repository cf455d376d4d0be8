package blackbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// standStill lets the session of a transaction stand still for as long as it likes.
func standStill(tx *gorm.DB) error {
	switch tx.Name() {
	case "sqlite": // it has no limit
		return nil
	case "postgresql":
		return tx.Exec("SET LOCAL idle_in_transaction_session_timeout = 0").Error
	}
	err := tx.Exec("SET SESSION idle_transaction_timeout = 0").Error
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1193 { // MySQL does not know it
		err = tx.Exec("SET SESSION wait_timeout = 28800").Error
	}
	return err
}

// lockRow holds the rows that the query selects until the function that it returns is called, as an operator
// does who leaves a transaction open.
func lockRow(t testing.TB, db *gorm.DB, query string, args ...any) (release func()) {
	t.Helper()
	tx := db.Begin()
	t.Cleanup(func() { tx.Rollback() })
	if err := standStill(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Exec(query+" FOR UPDATE", args...).Error; err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback().Error; err != nil {
			t.Error(err)
		}
	}
}

// runQueue expires orders of s until the test ends.
func runQueue(t *testing.T, s *sqlstore.Store, q *timeout.Queue, c order.Config) {
	t.Helper()
	svc := order.NewService(s, stock.NewStrategies(stock.Lockers{}), c)
	if err := q.Handle(order.ExpireTimer, svc.Expire, timeout.Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// stillOpen returns how many orders of the SKUs are stored as pending.
func stillOpen(t *testing.T, db *gorm.DB, skus ...string) (n int64) {
	t.Helper()
	err := db.Raw("SELECT COUNT(DISTINCT o.id) FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE l.sku IN ? AND o.status = ?",
		skus, string(order.Pending)).Scan(&n).Error
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// until polls done, and fails the test after the limit.
func until(t *testing.T, limit time.Duration, what string, done func() bool) (took time.Duration) {
	t.Helper()
	began := time.Now()
	for !done() {
		if took = time.Since(began); took > limit {
			t.Fatalf("after %v: not yet %s", took, what)
		}
		<-time.After(150 * time.Millisecond) // InnoDB refreshes its table of locks after 100 ms without a read
	}
	return time.Since(began)
}

// A locked stock row delays the expiry of its own orders only. No timer counts an attempt for it, and the other SKU of
// a basket can be bought. Once the row is free, its units are released without help.
func TestLockedStockRowHoldsUpItsOwnSKUOnly(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	url := testbedtest.Database(t)
	s, q := timed(t, open(t, url, "one", raw))
	const orders = 60
	for _, sku := range []string{"free", "other", "stuck"} {
		create(t, s, sku, "conditional", 10*orders)
	}
	for range orders {
		place(t, s, 0, "stuck")
		place(t, s, 0, "free")
	}
	for range 5 {
		place(t, s, 0, "other", "stuck")
	}
	release := lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = 'stuck'")
	runQueue(t, s, q, order.Config{})

	took := until(t, 30*time.Second, "expired: orders whose stock nobody holds",
		func() bool { return stillOpen(t, raw.db, "free") == 0 })
	t.Logf("the others expired after %v", took.Round(time.Millisecond))

	bought := 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); bought++ {
		r := request(1, "other")
		if err := s.Commit(t.Context(), &order.Batch{Claims: claim("other", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
			t.Fatalf("after %d orders: %v, %v", bought, err, r.Err)
		}
		if err := settle(t.Context(), s, r.Order.ID, order.Confirmed, "p"); err != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
	stuck, err := q.List(t.Context(), timeout.Filter{Kind: order.ExpireTimer, Limit: 1000})
	if err != nil || int64(len(stuck)) != stillOpen(t, raw.db, "stuck") || len(stuck) != orders+5 {
		t.Errorf("%d timers of %d orders, %v", len(stuck), stillOpen(t, raw.db, "stuck"), err)
	}
	for _, r := range stuck {
		if r.State != timeout.Open || r.LastError != "" {
			t.Errorf("%s: %s after %d attempts: %s", r.ID, r.State, r.Attempt, r.LastError)
		}
	}
	release()
	took = until(t, 30*time.Second, "back: the units of the SKU", func() bool { return stillOpen(t, raw.db, "stuck") == 0 })
	t.Logf("the units came back %v after the row was free; meanwhile %d of another SKU were bought", took.Round(time.Millisecond), bought)
	for _, sku := range []string{"free", "stuck"} {
		balanced(t, s, sku, 0, 0)
	}
	balanced(t, s, "other", 0, int64(bought))
}

// lockWaits counts the sessions of the database that wait for a row.
const lockWaits = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id IN " +
	"(SELECT id FROM information_schema.processlist WHERE db = DATABASE())"

// waiting polls until as many sessions of the database wait for a row.
func waiting(t *testing.T, db *gorm.DB, n int64) {
	t.Helper()
	until(t, 30*time.Second, "waiting for a row", func() bool {
		var found int64
		if err := db.Raw(lockWaits).Scan(&found).Error; err != nil {
			t.Fatal(err)
		}
		return found == n
	})
}

// Both rows of a basket are locked when it expires. One comes free, and while the expiry waits for the other one it
// keeps that from nobody.
func TestExpiryKeepsNoStockRowWhileItWaits(t *testing.T) {
	t.Parallel()
	for free, stuck := range map[string]string{"a": "b", "b": "a"} {
		t.Run(stuck+" stays locked", func(t *testing.T) {
			t.Parallel()
			raw := new(handle)
			url := testbedtest.Database(t)
			open(t, url, "raw", raw)
			s := open(t, url, "one")
			create(t, s, "a", "conditional", 10)
			create(t, s, "b", "conditional", 10)
			o := place(t, s, 0, "a", "b")
			releases := map[string]func(){}
			for _, sku := range []string{"a", "b"} {
				releases[sku] = lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = ?", sku)
			}
			var expiries sync.WaitGroup
			expiries.Go(func() {
				for {
					found, err := s.Expire(t.Context(), []string{o.ID})
					if err != nil {
						t.Error(err)
					}
					if err != nil || found[0].Again == 0 {
						return
					}
					<-time.After(found[0].Again)
				}
			})
			waiting(t, raw.db, 1)
			releases[free]()
			kept := 0
			for range 20 {
				var skus []string
				if err := raw.db.Raw("SELECT sku FROM skus WHERE sku = ? FOR UPDATE SKIP LOCKED", free).Scan(&skus).Error; err != nil {
					t.Fatal(err)
				}
				if kept++; len(skus) > 0 {
					kept = 0
				}
				if kept == 5 { // for half a second, and not at one moment
					t.Errorf("the row of %s is kept by an expiry that waits for that of %s", free, stuck)
					break
				}
				<-time.After(100 * time.Millisecond)
			}
			releases[stuck]()
			expiries.Wait()
			balanced(t, s, "a", 0, 0)
			balanced(t, s, "b", 0, 0)
		})
	}
}

// The reply to the COMMIT of an expiry that has waited for a stock row is lost. The caller of the expiry still gets the
// order's final state.
func TestLostReplyToTheCommitAfterAWait(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	database := testbedtest.Database(t)
	direct := open(t, database, "direct", raw)
	behind, p := behindProxy(t, database)
	s := open(t, behind, "one")
	create(t, direct, "a", "conditional", 10)
	o := place(t, direct, 0, "a")
	release := lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = 'a'")
	over := make(chan order.Expiry, 1)
	go func() { over <- expire(t, s, o.ID)[0] }()
	waiting(t, raw.db, 1)
	p.DropReply("COMMIT")
	release()
	e := <-over
	if p.Dropped() != 1 {
		t.Fatalf("%d replies were dropped, want 1", p.Dropped())
	}
	if e.Status != order.Expired || e.Ended == nil || e.Ended.ID != o.ID {
		t.Errorf("%+v, want that the order has ended", e)
	}
	balanced(t, direct, "a", 0, 0)
}

// brokenRelease is a gorm plugin that fails each statement which releases the units of several orders, once it is armed.
type brokenRelease struct{ armed atomic.Bool }

// Name implements [gorm.Plugin].
func (*brokenRelease) Name() string { return "broken release" }

// Initialize implements [gorm.Plugin].
func (b *brokenRelease) Initialize(db *gorm.DB) error {
	return db.Callback().Raw().Before("gorm:raw").Register("broken release", func(tx *gorm.DB) {
		if b.armed.Load() && strings.HasPrefix(tx.Statement.SQL.String(), "UPDATE skus SET reserved = reserved + CASE") {
			_ = tx.AddError(mysql.ErrInvalidConn)
		}
	})
}

// An expiry waits for a stock row, and its transaction fails after it has decided. The order has not ended, and is to be tried again.
func TestExpiryThatFailsAfterAWaitHasEndedNothing(t *testing.T) {
	t.Parallel()
	raw, broken := new(handle), new(brokenRelease)
	database := testbedtest.Database(t)
	direct := open(t, database, "direct", raw)
	s := open(t, database, "one", broken)
	create(t, direct, "a", "conditional", 10)
	o := place(t, direct, 0, "a")
	release := lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = 'a'")
	over := make(chan order.Expiry, 1)
	go func() {
		found, err := s.Expire(t.Context(), []string{o.ID})
		if err != nil || len(found) != 1 {
			t.Error(found, err)
			found = make([]order.Expiry, 1)
		}
		over <- found[0]
	}()
	waiting(t, raw.db, 1)
	broken.armed.Store(true)
	release()
	if e := <-over; e.Again == 0 || e.Status != "" || e.Ended != nil {
		t.Errorf("%+v, want that it is to be tried again", e)
	}
	balanced(t, direct, "a", 1, 0)
}
