package sqlstore_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// The levels of many SKUs are those of each, segmented or not; what does not exist has none.
func TestLevelsOf(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "redis", 10)
		create(t, s, "b", stock.SegmentedName, 1000)
		create(t, s, "c", "naive", 3)
		for sku, w := range map[string]stock.Write{"a": stock.RowLock, "b": stock.Segmented} {
			if err := s.Commit(ctx, claim(sku, w, dlock.Fence{}), []*order.Request{request(2, sku)}); err != nil {
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
