package sqlstore_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlerr"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// engines runs f on every engine, each time with the URL of an empty database.
func engines(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, "sqlite:"+filepath.Join(t.TempDir(), "shop.db"))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		f(t, testbedtest.Database(t))
	})
}

// variants is engines and a MariaDB that checks snapshots as its newer versions
// do by default.
func variants(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	engines(t, f)
	t.Run("mariadb_snapshot_isolation", func(t *testing.T) {
		t.Parallel()
		f(t, testbedtest.SnapshotDatabase(t))
	})
}

// open returns a store of one instance, migrated.
func open(t testing.TB, url, instance string, plugins ...gorm.Plugin) *sqlstore.Store {
	t.Helper()
	return opened(t, sqlstore.Config{URL: url, Instance: instance, Plugins: plugins})
}

// opened is open with a configuration. A database that seems out of reach, because the machine stood
// still for longer than a connection may take, is tried again.
func opened(t testing.TB, c sqlstore.Config) (s *sqlstore.Store) {
	t.Helper()
	reach := func(f func() error) {
		t.Helper()
		err := f()
		for end := time.Now().Add(time.Minute); sqlerr.Broken(err) && time.Now().Before(end); {
			err = f()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reach(func() (err error) {
		s, err = sqlstore.Open(t.Context(), c)
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	reach(func() error { return s.Migrate(t.Context()) })
	return s
}

// create puts units of a new SKU on sale.
func create(t testing.TB, s *sqlstore.Store, sku, strategy string, units int64) {
	t.Helper()
	if _, created, err := s.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: strategy, OnHand: units}); err != nil || !created {
		t.Fatalf("create %s: created %v, %v", sku, created, err)
	}
}

// auditOf returns the audit of one SKU.
func auditOf(t testing.TB, s *sqlstore.Store, sku string) stock.Audit {
	t.Helper()
	audits, err := insist(t.Context(), func() ([]stock.Audit, error) { return s.Audit(t.Context(), sku) })
	if err != nil {
		t.Fatal(err)
	}
	return audits[0]
}

// request returns a new order of quantity units of each SKU.
func request(quantity int64, skus ...string) *order.Request {
	r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c1"}, TTL: time.Hour}
	for _, sku := range skus {
		r.Order.Items = append(r.Order.Items, order.Item{SKU: sku, Quantity: quantity})
	}
	return r
}

func fence(token uint64) dlock.Fence { return dlock.Fence{Token: token, Owner: "owner"} }

func claim(sku string, w stock.Write, f dlock.Fence) []stock.Claim {
	return []stock.Claim{{SKU: sku, Write: w, Fence: f}}
}

// soldBy returns a strategy of SKUs that can be written like that.
func soldBy(w stock.Write) string {
	if w == stock.Segmented {
		return stock.SegmentedName
	}
	return "conditional"
}

// writeOf returns how sku is written without a guard.
func writeOf(t testing.TB, s *sqlstore.Store, sku string) stock.Write {
	t.Helper()
	if l, err := insist(t.Context(), func() (stock.Level, error) { return s.Level(t.Context(), sku) }); err != nil {
		t.Fatal(err)
	} else if l.Strategy == stock.SegmentedName {
		return stock.Segmented
	}
	return stock.Conditional
}

func TestLifeOfAnOrder(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		paid, cancelled := request(3, "a"), request(2, "a")
		for _, r := range []*order.Request{paid, cancelled} {
			if err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
		}
		got, err := s.Order(ctx, paid.Order.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(paid.Order, got); diff != "" {
			t.Errorf("stored order differs (-answered +stored):\n%s", diff)
		}
		if _, changed, err := s.Settle(ctx, order.Target{ID: paid.Order.ID}, order.Confirmed, "p1"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if _, changed, err := s.Settle(ctx, order.Target{ID: cancelled.Order.ID}, order.Cancelled, ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		o, changed, err := s.Settle(ctx, order.Target{ID: paid.Order.ID}, order.Cancelled, "")
		if err != nil || changed || o.Status != order.Confirmed || o.PaymentID != "p1" {
			t.Errorf("cancel a paid order: %v, changed %v, %v", o, changed, err)
		}
		if _, err := s.Restock(ctx, "a", 5, nil); err != nil {
			t.Fatal(err)
		}
		a := auditOf(t, s, "a")
		want := stock.Audit{SKU: "a", Strategy: "conditional", OnHand: 12, Stocked: 15, LedgerOnHand: 12, Sold: 3}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("audit (-want +got):\n%s", diff)
		}
	})
}

func TestExpiredOrderIsNeitherPaidNorCancelled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 1)
		r := request(1, "a")
		r.TTL = 0
		if err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r}); err != nil {
			t.Fatal(err)
		}
		for _, to := range []order.Status{order.Confirmed, order.Cancelled} {
			if o, changed, err := s.Settle(ctx, order.Target{ID: r.Order.ID}, to, "p"); err != nil || changed || o.Status != order.Expired {
				t.Errorf("%s: %s, changed %v, %v", to, o.Status, changed, err)
			}
		}
	})
}

func TestBasketIsAllOrNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		for _, w := range []stock.Write{stock.WriteBack, stock.Conditional, stock.Version, stock.RowLock, stock.Fenced, stock.Segmented} {
			a, b := "a-"+string(rune('0'+w)), "b-"+string(rune('0'+w))
			create(t, s, a, soldBy(w), 5)
			create(t, s, b, soldBy(w), 1)
			claims := append(claim(a, w, fence(1)), claim(b, w, fence(1))...)
			r := request(2, a, b)
			if err := s.Commit(ctx, claims, []*order.Request{r}); err != nil {
				t.Fatal(err)
			}
			short, ok := errors.AsType[*stock.ShortageError](r.Err)
			want := []stock.Shortage{{SKU: b, Requested: 2, Available: 1}}
			if !ok || cmp.Diff(want, short.Shortages) != "" {
				t.Errorf("write %d: %v", w, r.Err)
			}
			for _, sku := range []string{a, b} {
				if l, err := s.Level(ctx, sku); err != nil || l.Reserved != 0 {
					t.Errorf("write %d: %s has %d reserved, %v", w, sku, l.Reserved, err)
				}
			}
			if _, err := s.Order(ctx, r.Order.ID, ""); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("write %d: the refused order exists: %v", w, err)
			}
		}
	})
}

func TestBatchOfOneSKU(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		for _, w := range []stock.Write{stock.WriteBack, stock.Conditional, stock.Version, stock.RowLock, stock.Fenced, stock.Segmented} {
			sku := "a-" + string(rune('0'+w))
			create(t, s, sku, soldBy(w), 4)
			batch := []*order.Request{request(2, sku), request(3, sku), request(2, sku), request(1, sku)}
			if err := s.Commit(ctx, claim(sku, w, fence(1)), batch); err != nil {
				t.Fatal(err)
			}
			var accepted []bool
			for _, r := range batch {
				accepted = append(accepted, r.Err == nil)
			}
			if diff := cmp.Diff([]bool{true, false, true, false}, accepted); diff != "" {
				t.Errorf("write %d (-want +got):\n%s", w, diff)
			}
			if a := auditOf(t, s, sku); !a.OK() || a.Open != 4 {
				t.Errorf("write %d: %+v %q", w, a, a.Broken())
			}
		}
	})
}

func TestCommitCanBeRepeated(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		r := request(1, "a")
		for range 2 {
			if err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

func TestCreateSKU(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "redis", 10)
		if _, created, err := s.CreateSKU(ctx, stock.Level{SKU: "a", Strategy: "redis", OnHand: 10}); err != nil || created {
			t.Errorf("the same again: created %v, %v", created, err)
		}
		limited(t, s, "few", "redis", 10, 2)
		if l, created, err := s.CreateSKU(ctx, stock.Level{SKU: "few", Strategy: "redis", OnHand: 10, Limit: 2}); err != nil || created || l.Limit != 2 {
			t.Errorf("the same again: %+v, created %v, %v", l, created, err)
		}
		for _, l := range []stock.Level{
			{SKU: "a", Strategy: "naive", OnHand: 10},
			{SKU: "a", Strategy: "redis", OnHand: 11},
			{SKU: "a", Strategy: "redis", OnHand: 10, Limit: 2},
			{SKU: "few", Strategy: "redis", OnHand: 10},
		} {
			if _, _, err := s.CreateSKU(ctx, l); !errors.Is(err, stock.ErrExists) {
				t.Errorf("%+v: %v, want ErrExists", l, err)
			}
		}
		create(t, s, "A", "redis", 1) // names are compared byte by byte
		if _, err := s.Restock(ctx, "nothing", 1, nil); !errors.Is(err, stock.ErrNotFound) {
			t.Errorf("restock an unknown SKU: %v", err)
		}
		if _, err := s.Audit(ctx, "nothing"); !errors.Is(err, stock.ErrNotFound) {
			t.Errorf("audit an unknown SKU: %v", err)
		}
		if audits, err := s.Audit(ctx, ""); err != nil || len(audits) != 3 || audits[0].SKU != "A" || audits[1].Stocked != 10 {
			t.Errorf("audit of everything: %+v, %v", audits, err)
		}
		levels, err := s.Levels(ctx, "A", 1)
		if err != nil || len(levels) != 1 || levels[0].SKU != "a" {
			t.Errorf("levels behind A: %+v, %v", levels, err)
		}
	})
}
