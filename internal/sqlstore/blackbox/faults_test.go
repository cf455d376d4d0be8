package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// proxied returns a store that reaches its database through a proxy.
func proxied(t *testing.T) (*sqlstore.Store, *testbed.Proxy) {
	t.Helper()
	db, p := behindProxy(t, testbedtest.Database(t))
	return opened(t, sqlstore.Config{URL: db, Instance: "one", Connections: 4}), p
}

// behindProxy returns the URL of a database as it is behind a proxy.
func behindProxy(t *testing.T, database string) (address string, p *testbed.Proxy) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p = testbedtest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	return u.String(), p
}

// The database commits and the reply is lost. The order is placed, paid and answered once; a restock, whose retry
// cannot be recognized, returns an unknown outcome.
func TestLostReplyToCommit(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	ctx := t.Context()
	create(t, s, "a", "conditional", 10)

	proxy.DropReply("COMMIT")
	r := request(1, "a")
	if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
		t.Fatalf("place: %v, %v", err, r.Err)
	}
	proxy.DropReply("COMMIT")
	if o, _, err := s.Settle(ctx, order.Target{ID: r.Order.ID}, order.Confirmed, "p1"); err != nil || o.Status != order.Confirmed {
		t.Fatalf("pay: %v, %v", o.Status, err)
	}
	proxy.DropReply("COMMIT")
	if _, err := s.Restock(ctx, "a", 1, nil); !errors.Is(err, order.ErrOutcomeUnknown) {
		t.Errorf("restock: %v, want ErrOutcomeUnknown", err)
	}
	if n := proxy.Dropped(); n != 3 {
		t.Fatalf("%d replies were dropped, want 3", n)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Sold != 1 || a.Open != 0 || a.Stocked != 11 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// The lost attempt has taken the last units. The repetition finds none, and must not return sold out.
func TestLostReplyToTheCommitOfTheLastUnits(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	ctx := t.Context()
	for i, w := range []stock.Update{stock.WriteBack, stock.Conditional, stock.Version, stock.RowLock, stock.Fenced} {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		create(t, s, a, "conditional", 2)
		create(t, s, b, "conditional", 2)
		proxy.DropReply("COMMIT")
		r := request(2, a, b)
		claims := append(claim(a, w, fence(1)), claim(b, w, fence(1))...)
		if err := s.Commit(ctx, &order.Batch{Claims: claims, Requests: []*order.Request{r}}); err != nil || r.Err != nil || r.Order.Status != order.Pending {
			t.Errorf("write %d: %v, %v, %s", w, err, r.Err, r.Order.Status)
		}
		for _, sku := range []string{a, b} {
			if l := auditOf(t, s, sku); !l.OK() || l.Open != 2 {
				t.Errorf("write %d: %+v %q", w, l, l.Broken())
			}
		}
	}
	if n := proxy.Dropped(); n != 5 {
		t.Fatalf("%d replies were dropped, want 5", n)
	}
}

// A COMMIT that is on its way when the deadline comes is not reported as
// undone: it arrives later.
func TestDeadlineDuringCommit(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	behind, p := behindProxy(t, database)
	direct := open(t, database, "direct")
	create(t, direct, "a", "conditional", 10)
	for tries := 1; !arrivesLate(t, direct, behind, p); tries++ {
		if tries == 5 {
			t.Fatal("no COMMIT ever arrived, so nothing was shown")
		}
	}
}

// arrivesLate reports whether a COMMIT that was on its way at the deadline has arrived. The server waits for it for
// some seconds only, which a paused machine may exceed.
func arrivesLate(t *testing.T, direct *sqlstore.Store, behind string, p *testbed.Proxy) bool {
	t.Helper()
	g := newGate(gate{after: "ledger"})
	s := open(t, behind, "gated", g)
	ctx := passing{context.WithoutCancel(t.Context()), make(chan struct{})}
	r := request(1, "a")
	result := make(chan error, 1)
	go func() {
		result <- s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}})
	}()
	wait(t, "the order to be complete but for its COMMIT", g.reached)
	p.BlackHole()
	close(g.opened)
	time.AfterFunc(time.Second, func() { close(ctx.over) }) // the COMMIT has long been sent
	if err := <-result; !errors.Is(err, order.ErrOutcomeUnknown) {
		t.Errorf("%v, want ErrOutcomeUnknown", err)
	}
	if err := p.Pass(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if _, err := direct.Order(t.Context(), r.Order.ID, ""); err == nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// passing is a context whose deadline comes when over is closed.
type passing struct {
	context.Context //nolint:containedctx // It is a context.

	over chan struct{}
}

func (p passing) Done() <-chan struct{} { return p.over }

func (p passing) Err() error {
	select {
	case <-p.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The session's clock is UTC, in which no hour comes twice. In the server's zone, every order would expire an hour
// early in one night of the year.
func TestDatabaseClockIsUTC(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	var zone string
	look := &lookup{query: "SELECT @@session.time_zone", into: &zone}
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database, Plugins: []gorm.Plugin{look}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if zone != "+00:00" {
		t.Errorf("the session's time zone is %q", zone)
	}
}

// lookup is a gorm plugin that asks one question when it is installed.
type lookup struct {
	query string
	into  *string
}

func (*lookup) Name() string { return "lookup" }

func (l *lookup) Initialize(db *gorm.DB) error { return db.Raw(l.query).Scan(l.into).Error }

// A transaction that fails for a moment is tried again. It decides afresh: here the other transaction adds units.
func TestTransientFailuresAreRepeated(t *testing.T) {
	t.Parallel()
	t.Run("deadlock", func(t *testing.T) {
		database := testbedtest.Database(t)
		db := rawDB(t, database)
		one := open(t, database, "one")
		create(t, one, "a", "conditional", 10)
		create(t, one, "b", "conditional", 20)
		g := newGate(gate{second: locksSKU})
		s := open(t, database, "gated", g)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE skus SET version = version + 1 WHERE sku = 'b'"); err != nil {
			t.Fatal(err)
		}
		for range 20 { // the heavier transaction survives a deadlock
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES (?, 'c', 'CANCELLED', '', 0, 0)", order.NewID()); err != nil {
				t.Fatal(err)
			}
		}
		r := request(11, "a", "b")
		claims := append(claim("a", stock.Fenced, fence(1)), claim("b", stock.Fenced, fence(1))...)
		result := make(chan error, 1)
		go func() { result <- s.Commit(t.Context(), &order.Batch{Claims: claims, Requests: []*order.Request{r}}) }()
		wait(t, "the basket to hold the first row", g.reached)
		close(g.opened)
		if _, err := tx.ExecContext(t.Context(), "UPDATE skus SET version = version + 1, on_hand = on_hand + 1 WHERE sku = 'a'"); err != nil {
			t.Fatalf("the other transaction was the victim: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil || r.Err != nil {
			t.Error(err, r.Err)
		}
		if g.passed < 3 {
			t.Errorf("%d claims: the basket was never a victim, so nothing was shown", g.passed)
		}
	})
	t.Run("busy", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "shop.db")
		s := open(t, "sqlite:"+file, "one")
		create(t, s, "a", "conditional", 10)
		other, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		release := time.AfterFunc(1500*time.Millisecond, func() { tx.Rollback() }) // longer than one wait
		defer release.Stop()
		r := request(1, "a")
		if err := s.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
			t.Error(err, r.Err)
		}
	})
}

// A database that is gone, or silent, is an error within the deadline and
// leaves nothing behind.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	create(t, s, "a", "conditional", 10)
	place := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{request(1, "a")}})
	}
	proxy.Refuse()
	if err := place(2 * time.Second); !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("refused: %v", err)
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	proxy.BlackHole()
	for tries := 5; tries > 0; tries-- { // a machine that was paused proves nothing
		start := time.Now()
		if err := place(2 * time.Second); !errors.Is(err, stock.ErrBusy) {
			t.Errorf("silent: %v", err)
		}
		d := time.Since(start)
		if d < 8*time.Second {
			break
		}
		if tries == 1 {
			t.Errorf("a deadline of 2 s took %v, time after time", d)
		}
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 0 {
		t.Errorf("%+v %q", a, a.Broken())
	}
	if err := place(time.Minute); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}
