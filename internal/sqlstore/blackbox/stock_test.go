package blackbox_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// The levels of many SKUs are those of each; what does not exist has none.
func TestLevelsOf(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "redis", 10)
		create(t, s, "b", "conditional", 1000)
		create(t, s, "c", "naive", 3)
		for sku, w := range map[string]stock.Update{"a": stock.RowLock, "b": stock.Conditional} {
			if err := s.Commit(ctx, &order.Batch{Claims: claim(sku, w, dlock.Fence{}), Requests: []*order.Request{request(2, sku)}}); err != nil {
				t.Fatal(err)
			}
		}
		var want []stock.Level
		for _, sku := range []string{"a", "b"} {
			l, err := s.Level(ctx, sku)
			if err != nil || l.Reserved != 2 {
				t.Fatal(l, err)
			}
			want = append(want, l)
		}
		got, err := s.LevelsOf(ctx, []string{"b", "none", "a"})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b stock.Level) int { return cmp.Compare(a.SKU, b.SKU) })
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got, err := s.LevelsOf(ctx, nil); err != nil || len(got) > 0 {
			t.Error(got, err)
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
