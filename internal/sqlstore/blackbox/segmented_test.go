package blackbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// buySegments tries to place an order of so many units of a segmented SKU, and returns how many are left
// if that was refused.
func buySegments(t *testing.T, s *sqlstore.Store, sku string, quantity int64, ttl time.Duration) (o order.Order, left int64, ok bool) {
	t.Helper()
	r := request(quantity, sku)
	r.TTL = ttl
	if err := s.Commit(t.Context(), &order.Batch{Claims: claim(sku, stock.Segmented, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil {
		t.Fatal(err)
	}
	short, refused := errors.AsType[*stock.ShortageError](r.Err)
	switch {
	case refused:
		return order.Order{}, short.Shortages[0].Available, false
	case r.Err != nil:
		t.Fatal(r.Err)
	}
	return r.Order, 0, true
}

// parts returns what each row of a SKU has for sale, its own first.
func parts(t *testing.T, db *sql.DB, sku string) (free []int64) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT 0 AS segment, on_hand - reserved FROM skus WHERE sku = ?
		UNION ALL SELECT segment, on_hand - reserved FROM sku_segments WHERE sku = ? ORDER BY segment`, sku, sku)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var segment, n int64
		if err := rows.Scan(&segment, &n); err != nil {
			t.Fatal(err)
		}
		free = append(free, n)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return free
}

// Units scattered over segments, none of which has enough, are sold down to the last one. A refused order gets the
// number of units.
func TestScatteredUnitsAreSold(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "few", stock.SegmentedName, 3)
		if got := parts(t, rawDB(t, url), "few"); !cmp.Equal(got[:4], []int64{1, 1, 1, 0}) {
			t.Fatalf("%v are not scattered, so nothing is shown", got)
		}
		if _, left, ok := buySegments(t, s, "few", 4, time.Hour); ok || left != 3 {
			t.Errorf("4 of 3: %v, %d left", ok, left)
		}
		if _, left, ok := buySegments(t, s, "few", 3, time.Hour); !ok {
			t.Errorf("3 of 3 are refused, %d left", left)
		}
		if _, left, ok := buySegments(t, s, "few", 1, time.Hour); ok || left != 0 {
			t.Errorf("1 of none: %v, %d left", ok, left)
		}
		balanced(t, s, "few", 3, 0)

		create(t, s, "many", stock.SegmentedName, 100)
		for left := int64(100); left > 0; {
			q := 1 + rand.N(int64(12))
			_, found, ok := buySegments(t, s, "many", q, time.Hour)
			if ok != (q <= left) || !ok && found != left {
				t.Fatalf("%d of %d: %v, %d left", q, left, ok, found)
			}
			if ok {
				left -= q
			}
		}
		balanced(t, s, "many", 100, 0)
	})
}

// watched is the segmented SKU a, as several stores see it. There is also a SKU b of seven units.
type watched struct {
	stores  []*sqlstore.Store
	version int64 // of the latest look
}

// level fails the test unless all stores see these units of a. After a change, which what names, the first sees a higher version.
func (w *watched) level(t *testing.T, what string, onHand, reserved int64) {
	t.Helper()
	want := stock.Level{SKU: "a", Strategy: stock.SegmentedName, OnHand: onHand, Reserved: reserved}
	for i, side := range w.stores {
		got, err := side.Level(t.Context(), "a")
		all, listed := side.Levels(t.Context(), "", 9)
		if err != nil || listed != nil || len(all) != 2 || all[0] != got || all[1].OnHand != 7 {
			t.Errorf("%s: %+v in %+v, %v, %v", what, got, all, err, listed)
		}
		if want.Version = got.Version; got != want || i == 0 && got.Version <= w.version && what != "" {
			t.Errorf("%s: %+v after version %d, want %+v", what, got, w.version, want)
		}
		w.version = got.Version
	}
	if a := auditOf(t, w.stores[0], "a"); !a.OK() || a.OnHand != onHand || a.Reserved != reserved {
		t.Errorf("%s: %+v %q", what, a, a.Broken())
	}
}

// Every change of a segmented SKU changes its level by as much, and its version.
func TestLifeOfASegmentedSKU(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s, other := t.Context(), open(t, url, "one"), open(t, url, "two")
		db := rawDB(t, url)
		first, _, err := s.CreateSKU(ctx, stock.Level{SKU: "a", Strategy: stock.SegmentedName, OnHand: 35})
		if err != nil || first.OnHand != 35 || first.Version != 1 {
			t.Fatal(first, err)
		}
		if _, created, err := s.CreateSKU(ctx, stock.Level{SKU: "a", Strategy: stock.SegmentedName, OnHand: 35}); created || err != nil {
			t.Errorf("the same again: created %v, %v", created, err)
		}
		create(t, s, "b", "conditional", 7)
		w := &watched{stores: []*sqlstore.Store{s, other}, version: first.Version}
		w.level(t, "", 35, 0)
		paid, _, _ := buySegments(t, s, "a", 2, time.Hour)
		w.level(t, "placed", 35, 2)
		cancelled, _, _ := buySegments(t, other, "a", 30, time.Hour)
		w.level(t, "gathered", 35, 32)
		expired, _, _ := buySegments(t, s, "a", 3, 0)
		w.level(t, "sold out", 35, 35)
		if _, changed, err := open(t, url, "three").Settle(ctx, order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		w.level(t, "paid", 33, 33)
		if _, changed, err := s.Settle(ctx, order.Target{ID: cancelled.ID}, order.Cancelled, ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		w.level(t, "cancelled", 33, 3)
		if _, left, ok := buySegments(t, s, "a", 31, time.Hour); ok || left != 30 {
			t.Errorf("31 of 30: %v, %d left", ok, left)
		}
		again, left, ok := buySegments(t, s, "a", 30, 0)
		if !ok {
			t.Errorf("what was cancelled is not for sale: %d left", left)
		}
		w.level(t, "sold again", 33, 33)
		expire(t, open(t, url, "four"), expired.ID, again.ID)
		w.level(t, "expired", 33, 0)
		if got := parts(t, db, "a"); len(got) != 16 || min(got[0], got[7], got[15]) < 1 {
			t.Errorf("%v: what expired is not spread", got)
		}
		if _, left, ok := buySegments(t, s, "a", 33, time.Hour); !ok {
			t.Errorf("what expired is not for sale: %d left", left)
		}
		if l, err := other.Restock(ctx, "a", 160, nil); err != nil || l.OnHand != 193 || l.Reserved != 33 {
			t.Errorf("%+v, %v", l, err)
		}
		w.level(t, "restocked", 193, 33)
		for i, n := range parts(t, db, "a") {
			if n != 10 {
				t.Errorf("segment %d has %d of 160 units", i, n)
			}
		}
		if _, left, ok := buySegments(t, s, "a", 160, time.Hour); !ok {
			t.Errorf("what was restocked is not for sale: %d left", left)
		}
		w.level(t, "sold", 193, 193)
	})
}

// The audit reads every segment.
func TestAuditFindsATamperedSegment(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, db := open(t, url, "one"), rawDB(t, url)
		for i, tamper := range []string{
			"UPDATE sku_segments SET on_hand = on_hand + 1 WHERE sku = ? AND segment = 15",
			"UPDATE sku_segments SET reserved = reserved - 1 WHERE sku = ? AND segment = 1",
			"DELETE FROM sku_segments WHERE sku = ? AND segment = 7",
			"UPDATE skus SET reserved = reserved + 1 WHERE sku = ?",
		} {
			sku := fmt.Sprint("a", i)
			create(t, s, sku, stock.SegmentedName, 32)
			if _, _, ok := buySegments(t, s, sku, 5, time.Hour); !ok {
				t.Fatal("refused")
			}
			balanced(t, s, sku, 5, 0)
			if _, err := db.ExecContext(t.Context(), tamper, sku); err != nil {
				t.Fatal(err)
			}
			if a := auditOf(t, s, sku); a.OK() {
				t.Errorf("%s: %+v", tamper, a)
			}
			audits, err := s.Audit(t.Context(), "")
			if err != nil || len(audits) != i+1 || audits[i].OK() {
				t.Errorf("%s: %+v, %v", tamper, audits, err)
			}
		}
	})
}
