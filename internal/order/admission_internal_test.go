package order

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/stock"
)

// Under overload a SKU that is sold one by one has as many orders in flight as its bound, and another SKU still has
// room. Orders that join a batch of a cohort are bounded by the permits alone. The counts are zero when all orders have
// left.
func TestOrdersThatJoinABatchAreNoOverload(t *testing.T) {
	t.Parallel()
	limiter, err := permits.New(nil, permits.Config{Permits: 32})
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{permits: limiter}
	s.overload.limit, s.overload.alone, s.overload.idle = fewest, time.Hour, time.Now()
	var leaves []func()
	enter := func(strategy string, skus ...string) (n int) {
		for range 32 {
			var offers []stock.Offer
			for _, sku := range skus {
				offers = append(offers, stock.Offer{SKU: sku, Strategy: stock.Strategy{Name: strategy, Cohort: strategy == "cohort"}})
			}
			leave, err := s.enter(&entry{ctx: t.Context(), offers: offers})
			if errors.Is(err, ErrConcurrencyLimit) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
			n++
		}
		return n
	}
	for _, c := range []struct {
		strategy string
		skus     []string
		want     int
	}{{"plain", []string{"a"}, fewest}, {"plain", []string{"b"}, 1}, {"cohort", []string{"c"}, 16}, {"cohort", []string{"c", "d"}, 0}} {
		if n := enter(c.strategy, c.skus...); n != c.want {
			t.Errorf("%d orders of %q in flight, sold by %s, want %d", n, c.skus, c.strategy, c.want)
		}
	}
	if n := limiter.Stats().InUse; n != len(leaves) {
		t.Errorf("%d permits in use by %d orders", n, len(leaves))
	}
	for range 32 - len(leaves) { // others have all the permits
		release, err := limiter.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, release)
	}
	if n := enter("plain", "d"); n > 0 {
		t.Errorf("%d orders in flight without a permit", n)
	}
	for _, leave := range leaves {
		leave()
	}
	if n := limiter.Stats().InUse; n > 0 || s.overload.inFlight > 0 || len(s.inFlight.by) > 0 {
		t.Errorf("%d permits are in use, and %d orders in flight of %v", n, s.overload.inFlight, s.inFlight.by)
	}
}
