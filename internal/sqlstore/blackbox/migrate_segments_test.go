package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// run executes statements.
func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// number returns the result of a query that has one.
func number(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// spread makes the SKU a segmented one, as version 0.1.0 left it in mid-sale: payments and releases have gone to other
// rows than the reservations, so some rows are negative. It returns the schema to the state before migration 0011.
func spread(t *testing.T, db *sql.DB, sqlite bool) {
	t.Helper()
	allow := "ALTER TABLE sku_segments DROP CONSTRAINT segments_are_folded"
	if sqlite {
		allow = "DROP TRIGGER segments_are_folded"
	}
	run(t, db, allow, "DELETE FROM schema_migrations WHERE version > 10")
	scatter(t, db)
}

// scatter moves units of a from its row to 15 segments.
func scatter(t *testing.T, db *sql.DB) {
	t.Helper()
	for i := range 15 {
		n := i + 1
		onHand, reserved := int64(5-n), int64(n%4-2)
		for _, c := range []struct {
			text string
			args []any
		}{
			{"INSERT INTO sku_segments (sku, segment, on_hand, reserved, version) VALUES ('a', ?, ?, ?, 2)", []any{n, onHand, reserved}},
			{"UPDATE skus SET strategy = 'segmented', segments = 15, on_hand = on_hand - ?, reserved = reserved - ?, version = version - 2 WHERE sku = 'a'", []any{onHand, reserved}},
		} {
			if _, err := db.ExecContext(t.Context(), c.text, c.args...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// foldable is a database with a SKU a of 100 units, four orders of which are open, and b, which was never spread.
type foldable struct {
	*sqlstore.Store

	before                    stock.Level
	paid, cancelled, due, old order.Order
}

func newFoldable(t *testing.T, url string) foldable {
	t.Helper()
	f := foldable{Store: open(t, url, "one")}
	create(t, f.Store, "a", "conditional", 100)
	create(t, f.Store, "b", "for-update", 7)
	for range 40 { // so that the version is higher than that of its segments
		if _, err := f.Restock(t.Context(), "a", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	f.paid, f.cancelled, f.due = place(t, f.Store, time.Hour, "a"), place(t, f.Store, time.Hour, "a", "b"), place(t, f.Store, 0, "a")
	f.old = place(t, f.Store, time.Hour, "a")
	if err := settle(t.Context(), f.Store, f.old.ID, order.Confirmed, "p0"); err != nil {
		t.Fatal(err)
	}
	f.before = levelOf(t, f.Store, "a")
	return f
}

// check fails the test unless the row of a has all units, and the open orders end in it.
func (f foldable) check(t *testing.T, db *sql.DB) {
	t.Helper()
	if diff := cmp.Diff(f.before, levelOf(t, f.Store, "a")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM sku_segments"); n != 0 {
		t.Errorf("%d segments are left", n)
	}
	if n := number(t, db, "SELECT SUM(segments) FROM skus"); n != 0 {
		t.Errorf("the SKUs say that they have %d segments", n)
	}
	for _, sku := range []string{"a", "b"} {
		if a := auditOf(t, f.Store, sku); !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
}

// end ends the orders that were open during the migration.
func (f foldable) end(t *testing.T) {
	t.Helper()
	err := errors.Join(settle(t.Context(), f.Store, f.paid.ID, order.Confirmed, "p1"), settle(t.Context(), f.Store, f.cancelled.ID, order.Cancelled, ""))
	if err != nil {
		t.Error(err)
	}
	if e := expire(t, f.Store, f.due.ID); e[0].Status != order.Expired {
		t.Errorf("%+v", e[0])
	}
	if l := levelOf(t, f.Store, "a"); l.OnHand != f.before.OnHand-1 || l.Reserved != 0 {
		t.Errorf("%+v, want one unit less than %+v, and none reserved", l, f.before)
	}
	for _, sku := range []string{"a", "b"} {
		if a := auditOf(t, f.Store, sku); !a.OK() || a.Open != 0 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
}

// The units of a segmented SKU go to its row, and orders that are open meanwhile end there. A migration that ended after
// the fold is taken up again, and so is one that found another segmented SKU.
func TestMigrationFoldsSegments(t *testing.T) {
	t.Parallel()
	formerEngines(t, func(t *testing.T, url string) {
		f, db, sqlite := newFoldable(t, url), rawDB(t, url), url[:6] == "sqlite"
		spread(t, db, sqlite)
		if err := f.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.check(t, db)
		run(t, db, "DELETE FROM schema_migrations WHERE version > 10") // it ended before it had noted that it was done
		if err := f.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.check(t, db)
		spread(t, db, sqlite)
		if err := f.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.check(t, db)
		f.end(t)
	})
}

// After the migration, an instance of version 0.1.0 cannot create a segmented SKU, whose units a later one would not count.
func TestNoSegmentIsCreatedAfterTheMigration(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		open(t, url, "one")
		_, err := rawDB(t, url).ExecContext(t.Context(), "INSERT INTO sku_segments (sku, segment, on_hand, reserved, version) VALUES ('a', 1, 7, 0, 0)")
		if err == nil {
			t.Error("a segment was inserted")
		}
	})
}

// A migration that ends while it waits for a segment that a previous instance has locked changes nothing. The next one
// waits as well, and folds what that instance has left.
func TestMigrationThatEndsHalfWayLosesNoUnit(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t) // SQLite has one transaction at a time
	f, db := newFoldable(t, url), rawDB(t, url)
	spread(t, db, false)
	sums := func() (all [3]int64) {
		for i, column := range []string{"on_hand", "reserved", "version"} {
			all[i] = number(t, db, "SELECT SUM("+column+") FROM sku_segments")
		}
		return all
	}
	before := sums()
	restock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer restock.Rollback()
	for _, statement := range []string{
		"UPDATE sku_segments SET on_hand = on_hand + 3, version = version + 1 WHERE sku = 'a' AND segment = 9",
		"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES ('a', '', 'RESTOCK', 3, 3, 0, 0, 'old', 0)",
	} {
		if _, err := restock.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Migrate(ctx) }()
	until(t, 30*time.Second, "waiting for the segment: the migration", func() bool {
		return number(t, db, lockWaits) == 1
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the migration ended with %v", err)
	}
	if after := sums(); after != before || number(t, db, "SELECT COUNT(*) FROM skus WHERE strategy = 'segmented'") != 1 {
		t.Errorf("the segments had %v, and have %v", before, after)
	}
	go func() { ended <- f.Migrate(t.Context()) }()
	until(t, 30*time.Second, "waiting for the segment: the next migration", func() bool {
		return number(t, db, lockWaits) == 1
	})
	if err := restock.Commit(); err != nil {
		t.Fatal(err)
	}
	f.before.OnHand += 3
	f.before.Version++
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f.check(t, db)
	f.end(t)
}

// Segments that a previous instance inserts between the fold and the constraint fail the migration. The next one folds them.
func TestMigrationFailsAlongsideNewSegments(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t) // SQLite migrates in one transaction
	f, db := newFoldable(t, url), rawDB(t, url)
	spread(t, db, false)
	run(t, db, "UPDATE sku_segments SET sku = 'late'") // of a SKU whose row is committed later
	if err := f.Migrate(t.Context()); err == nil {
		t.Fatal("a segment that no SKU has was left behind")
	}
	run(t, db, "UPDATE sku_segments SET sku = 'a'", "UPDATE skus SET segments = 15, strategy = 'segmented' WHERE sku = 'a'")
	if err := f.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.check(t, db)
}
