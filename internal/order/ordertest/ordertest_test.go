package ordertest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/stock"
)

// held returns what the history of a sale by a shop with that flaw contradicts.
func held(t *testing.T, f flaw) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const units, limit = 8, 4
		h := new(ordertest.History)
		s := &shop{flaw: f, h: h, limit: limit, units: units, rows: make(map[string]*row)}
		var clients sync.WaitGroup
		var mu sync.Mutex
		var ids []string
		for n := range 6 {
			clients.Go(func() {
				c := h.Client(s)
				for range 40 {
					mu.Lock()
					id := ""
					if len(ids) > 0 {
						id = ids[max(0, len(ids)-1-rand.N(4))]
					}
					mu.Unlock()
					ctx, target := t.Context(), order.Target{ID: id}
					switch do := rand.N(8); {
					case do < 2 || id == "":
						o, err := c.Place(ctx, order.Purchase{
							Customer: fmt.Sprint("c", n%2), Items: []order.Item{{SKU: "a", Quantity: 1 + rand.N[int64](3)}},
						})
						if err == nil {
							mu.Lock()
							ids = append(ids, o.ID)
							mu.Unlock()
						}
					case do == 2:
						_, _ = c.Pay(ctx, target, fmt.Sprint("p", n))
					case do == 3:
						_, _ = c.Cancel(ctx, target)
					case do == 4:
						_, _ = c.Extend(ctx, target, 20*time.Millisecond)
					case do == 5:
						_, _ = c.Orders(ctx, order.Filter{Before: id})
					default:
						_, _ = c.Order(ctx, id, "")
					}
				}
			})
		}
		clients.Wait()
		s.expires.Wait()
		err = h.Check(stock.Level{SKU: "a", OnHand: units, Limit: limit})
	})
	return err
}

func TestHistoryOfASafeShopIsExplained(t *testing.T) {
	t.Parallel()
	for range 300 {
		if err := held(t, none); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoriesOfUnsafeShopsAreNotExplained(t *testing.T) {
	t.Parallel()
	for _, f := range []flaw{startTime, plainRead, laterLevel, plainLevel, uncounted, lostPayment} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			const tries = 5_000 // each takes a millisecond or two
			for n := range tries {
				if err := held(t, f); err != nil {
					t.Logf("sale %d: %.300v", n+1, err)
					return
				}
			}
			t.Errorf("%d sales, and nothing was found", tries)
		})
	}
}
