package order

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/stock"
)

// observed is an [Observer] that notes transactions. Its fields are of the goroutine of the test: in a bubble, all others wait.
type observed struct {
	discard

	sizes []int
	waits []time.Duration
	of    []int // the size of the first transaction of each order
}

func (o *observed) Committing(_ context.Context, orders int) { o.sizes = append(o.sizes, orders) }

func (o *observed) Waited(_ context.Context, d time.Duration, orders int) {
	o.waits, o.of = append(o.waits, d), append(o.of, orders)
}

// The observer gets the size of each transaction, and the wait of each order once, though a conflict has it committed twice.
func TestTransactionsAreObserved(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		seen := new(observed)
		r.queue.observer = seen
		first := r.do(r.Context(), "1", "conditional/a")
		c := r.commit("1")
		done := r.all("b", "2", "3")
		time.Sleep(5 * time.Millisecond)
		c.answer <- nil
		r.ended(first, nil)
		r.commit("2 3").answer <- stock.ErrConflict
		r.commit("2 3").answer <- nil
		for _, d := range done {
			r.ended(d, nil)
		}
		if diff := cmp.Diff([]int{1, 2, 2}, seen.sizes); diff != "" {
			r.Errorf("sizes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Millisecond, 5 * time.Millisecond}, seen.waits); diff != "" {
			r.Errorf("waits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 2, 2}, seen.of); diff != "" {
			r.Errorf("sizes of the first transactions (-want +got):\n%s", diff)
		}
	})
}

// The strategy of a basket is that of its SKUs, or mixed.
func TestStrategyOfItems(t *testing.T) {
	t.Parallel()
	k := new(offers)
	for sku, name := range map[string]string{"a": "redis", "b": "redis", "c": "sql"} {
		k.known.Store(sku, stock.Offer{SKU: sku, Strategy: stock.Strategy{Name: name}})
	}
	for want, all := range map[string][][]string{"redis": {{"a"}, {"a", "b"}}, "mixed": {{"a", "c"}, {"a", "c", "a"}}, "": {nil, {"a", "new"}}} {
		for _, skus := range all {
			var items []Item
			for _, sku := range skus {
				items = append(items, Item{SKU: sku})
			}
			if got := k.strategy(items); got != want {
				t.Errorf("%q are sold by %q, want %q", skus, got, want)
			}
		}
	}
}

// Each limit of orders in flight has an error of its own, and all match ErrConcurrencyLimit.
func TestEachLimitHasItsError(t *testing.T) {
	t.Parallel()
	all := []error{ErrCrowded, ErrServiceCrowded, ErrOverloaded}
	service := func(most int) *Service {
		limiter, err := permits.New(nil, permits.Config{Permits: most})
		if err != nil {
			t.Fatal(err)
		}
		return &Service{permits: limiter}
	}
	crowded, served, loaded, taken := service(2), service(8), service(32), service(32)
	loaded.overload.limit, loaded.overload.alone, loaded.overload.idle = fewest, time.Hour, time.Now()
	for range 32 {
		if _, err := taken.permits.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		on    *Service
		store string
		skus  []string
		want  error
	}{
		{"orders of one SKU", crowded, "", []string{"a"}, ErrCrowded},
		{"orders of one lock service", served, "redis", []string{"a", "b", "c", "d", "e", "f", "g", "h"}, ErrServiceCrowded},
		{"load", loaded, "", []string{"a", "b", "c", "d", "e", "f", "g", "h"}, ErrOverloaded},
		{"permits", taken, "", []string{"a"}, nil},
	} {
		var err error
		for i := 0; err == nil; i++ {
			offer := stock.Offer{SKU: c.skus[i%len(c.skus)], Strategy: stock.Strategy{Store: c.store}}
			_, err = c.on.enter(&entry{ctx: t.Context(), offers: []stock.Offer{offer}})
		}
		is := slices.IndexFunc(all, func(limit error) bool { return errors.Is(err, limit) })
		if !errors.Is(err, ErrConcurrencyLimit) || is != slices.Index(all, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
