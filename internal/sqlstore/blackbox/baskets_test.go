package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// victims is a gorm plugin that counts the statements that failed because of a deadlock, and
// those that waited too long for a lock.
type victims struct{ deadlocks, waits atomic.Int64 }

func (*victims) Name() string { return "victims" }

func (v *victims) Initialize(db *gorm.DB) error {
	count := func(tx *gorm.DB) {
		e, ok := errors.AsType[*driver.MySQLError](tx.Error)
		switch {
		case ok && e.Number == 1213:
			v.deadlocks.Add(1)
		case ok && e.Number == 1205:
			v.waits.Add(1)
		}
	}
	return errors.Join(
		db.Callback().Raw().After("gorm:raw").Register("victims", count),
		db.Callback().Create().After("gorm:create").Register("victims", count),
		db.Callback().Row().After("gorm:row").Register("victims", count),
		db.Callback().Query().After("gorm:query").Register("victims", count),
	)
}

// randomBasket returns an order of a few of the SKUs. Their sequence is ascending, or descending for an odd side.
func randomBasket(skus []string, side int) order.Purchase {
	var items []order.Item
	for _, i := range rand.Perm(len(skus))[:1+rand.N(5)] {
		items = append(items, order.Item{SKU: skus[i], Quantity: 1 + rand.N(int64(3))})
	}
	slices.SortFunc(items, func(a, b order.Item) int { return strings.Compare(a.SKU, b.SKU) * (1 - 2*(side%2)) })
	return order.Purchase{Customer: fmt.Sprint("c", rand.N(16)), Items: items}
}

// Two instances place random baskets with their SKUs in opposite orders, with all strategies, limits and keys.
// Meanwhile others are paid, cancelled and expired. Short units are the only error, and there is no deadlock storm.
func TestBasketsInOppositeOrders(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	count := new(victims)
	lease, units := memlock.New(memlock.Config{}), counter(t)
	stores, services := []string{"one", "two"}, make([]*order.Service, 2)
	s := open(t, url, "books", count)
	strategies := []string{"conditional", "for-update", "optimistic", "redis", "redis-cohort", "lua"}
	var skus []string
	for n := range 12 {
		sku := fmt.Sprint("sku-", n)
		skus = append(skus, sku)
		limited(t, s, sku, strategies[n%len(strategies)], 400, int64(n%3)*15)
	}
	for i, name := range stores {
		services[i] = order.NewService(open(t, url, name, count), stock.NewStrategies(stock.Lockers{Redis: lease, Units: units}), order.Config{MaxOpen: 30, TTL: time.Hour})
	}
	baskets, sides := testbedtest.Size(600, 20_000), 8
	var (
		group    sync.WaitGroup
		accepted atomic.Int64
		short    atomic.Int64
	)
	for side := range sides {
		group.Go(func() {
			svc := services[side%2]
			for n := range baskets / sides {
				purchase := randomBasket(skus, side)
				purchase.Key = keyed("POST /orders", fmt.Sprint(side, "-", n), "")
				o, err := insist(t.Context(), func() (order.Order, error) { return svc.Place(t.Context(), purchase) })
				_, isShort := errors.AsType[*stock.ShortageError](err)
				_, over := errors.AsType[*order.LimitError](err)
				switch {
				case isShort || over:
					short.Add(1)
					continue
				case err != nil:
					t.Error(err)
					return
				}
				accepted.Add(1)
				switch target := (order.Target{ID: o.ID}); n % 4 {
				case 0:
					_, err = insist(t.Context(), func() (order.Order, error) { return svc.Pay(t.Context(), target, "p1") })
				case 1:
					_, err = insist(t.Context(), func() (order.Order, error) { return svc.Cancel(t.Context(), target) })
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d accepted, %d refused, %d deadlocks, %d waits too long", accepted.Load(), short.Load(), count.deadlocks.Load(), count.waits.Load())
	audits, err := s.Audit(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range audits {
		if !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
	if n := count.deadlocks.Load(); n > int64(baskets/100) || accepted.Load() == 0 {
		t.Errorf("%d deadlocks of %d baskets, %d accepted", n, baskets, accepted.Load())
	}
}

// Orders with a limit and payments of the same customer do not deadlock, though each reads the rows that the other one
// changes.
func TestPaymentsDuringLimitedOrders(t *testing.T) {
	t.Parallel()
	url, count := testbedtest.Database(t), new(victims)
	s := open(t, url, "one", count)
	var group sync.WaitGroup
	sides, rounds := 8, testbedtest.Size(40, 500)
	for side := range sides {
		sku := fmt.Sprint("a", side)
		limited(t, s, sku, "conditional", 10_000, 10_000)
		group.Go(func() {
			for range rounds {
				o := place(t, s, time.Hour, sku)
				if err := settle(t.Context(), s, o.ID, order.Confirmed, "p1"); err != nil {
					t.Error(err)
				}
				paid, err := insist(t.Context(), func() (order.Order, error) { return s.Order(t.Context(), o.ID, "") })
				if err != nil || paid.Status != order.Confirmed {
					t.Error(paid.Status, err)
				}
			}
		})
	}
	group.Wait()
	if n := count.deadlocks.Load(); n > int64(rounds/20) {
		t.Errorf("%d deadlocks of %d orders", n, sides*rounds)
	}
	t.Logf("%d deadlocks, %d waits too long", count.deadlocks.Load(), count.waits.Load())
}

// Two SKUs are in demand: 16 customers buy each without a pause. Baskets of both are placed all the same.
func TestBasketIsPlacedAmongSingles(t *testing.T) {
	t.Parallel()
	s := open(t, testbedtest.Database(t), "one")
	create(t, s, "a", "conditional", 10_000_000)
	create(t, s, "b", "conditional", 10_000_000)
	buy := func(ctx context.Context, skus ...string) error {
		r, err := placeOne(ctx, s, skus...)
		return errors.Join(err, r.Err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var (
		buyers  sync.WaitGroup
		singles atomic.Int64
	)
	for i := range 32 {
		buyers.Go(func() {
			for ctx.Err() == nil {
				if err := buy(ctx, []string{"a", "b"}[i%2]); err == nil {
					singles.Add(1)
				}
			}
		})
	}
	baskets, began := testbedtest.Size(10, 100), time.Now()
	for range baskets {
		patient, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := buy(patient, "a", "b"); err != nil {
			t.Error(err)
		}
		cancel()
		if t.Failed() {
			break
		}
	}
	t.Logf("%d baskets and %d orders of one SKU in %v", baskets, singles.Load(), time.Since(began))
	stop()
	buyers.Wait()
}
