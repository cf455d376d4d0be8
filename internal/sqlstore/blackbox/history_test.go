package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// Clients of two instances buy, pay, cancel, extend and read orders that expire meanwhile. One sequence of events
// explains all that they were answered.
func TestHistoryOfASale(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, raw, h := t.Context(), new(handle), new(ordertest.History)
		one, q := timed(t, open(t, url, "one", raw, slow{}))
		runQueue(t, one, q, order.Config{Publisher: h})
		two := open(t, url, "two", slow{}).WithTimers(q)
		strategies := stock.NewStrategies(stock.Lockers{Redis: memlock.New(memlock.Config{})})
		var levels []stock.Level
		for _, strategy := range []string{"conditional", "for-update", "optimistic", "redis", "redis-cohort"} {
			l := stock.Level{SKU: strategy, Strategy: strategy, OnHand: 30, Limit: 12}
			limited(t, one, l.SKU, l.Strategy, l.OnHand, l.Limit)
			levels = append(levels, l)
		}
		c := order.Config{TTL: 150 * time.Millisecond, Publisher: h}
		shops := []ordertest.Shop{h.Client(order.NewService(one, strategies, c)), h.Client(order.NewService(two, strategies, c))}
		var orders placed
		var clients, readers sync.WaitGroup
		reading, stop := context.WithCancel(ctx)
		for n := range 2 {
			readers.Go(func() {
				for reading.Err() == nil {
					if id := orders.latest(); id != "" {
						_, _ = shops[n].Order(ctx, id, "")
					}
					<-time.After(time.Millisecond)
				}
			})
		}
		for n := range 6 {
			clients.Go(func() {
				for range testbedtest.Size(50, 1000) {
					if err := anything(ctx, shops[rand.N(2)], &orders, fmt.Sprint("c", n/2), levels); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
		stop()
		readers.Wait()
		until(t, time.Minute, "final: all orders", func() bool {
			var open, expired int
			err := raw.db.Raw("SELECT COUNT(CASE WHEN status = 'PENDING' THEN 1 END), COUNT(CASE WHEN status = 'EXPIRED' THEN 1 END) FROM orders").
				Row().Scan(&open, &expired)
			if err != nil {
				t.Fatal(err)
			}
			return open == 0 && h.Expired() == expired
		})
		t.Logf("%d orders, of which %d expired", len(orders.ids), h.Expired())
		if err := h.Check(levels...); err != nil {
			t.Error(err)
		}
	})
}

// slow has some transactions wait where others could come between: for the stock, and before they look why there
// was too little.
type slow struct{}

func (slow) Name() string { return "slow" }

func (slow) Initialize(db *gorm.DB) error {
	wait := func(tx *gorm.DB) {
		text := tx.Statement.SQL.String()
		if rand.N(2) == 0 && (strings.Contains(text, "UPDATE skus SET") || strings.HasPrefix(text, "SELECT * FROM skus WHERE sku = ?")) {
			<-time.After(rand.N(150 * time.Millisecond))
		}
	}
	return errors.Join(db.Callback().Raw().Before("gorm:raw").Register("slow", wait),
		db.Callback().Row().Before("gorm:row").Register("slow", wait),
		db.Callback().Query().Before("gorm:query").Register("slow", wait))
}

// placed is the ids of the orders of all clients.
type placed struct {
	mu  sync.Mutex
	ids []string
}

func (p *placed) add(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = append(p.ids, id)
}

// latest returns one of the latest orders, or nothing.
func (p *placed) latest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) == 0 {
		return ""
	}
	return p.ids[max(0, len(p.ids)-1-rand.N(6))]
}

// anything does one of the things that a customer may do, whatever the answer is. An error says that there was none.
func anything(ctx context.Context, s ordertest.Shop, orders *placed, customer string, levels []stock.Level) error {
	id := orders.latest()
	target := order.Target{ID: id}
	switch do := rand.N(10); {
	case do < 4 || id == "":
		p := order.Purchase{Customer: customer}
		for _, i := range rand.Perm(len(levels))[:1+rand.N(2)] {
			p.Items = append(p.Items, order.Item{SKU: levels[i].SKU, Quantity: 1 + rand.N[int64](3)})
		}
		if o, err := s.Place(ctx, p); err == nil {
			orders.add(o.ID)
		}
	case do == 4:
		_, _ = s.Pay(ctx, target, customer)
	case do == 5:
		_, _ = s.Cancel(ctx, target)
	case do == 6:
		_, _ = s.Extend(ctx, target, 100*time.Millisecond)
	case do == 7:
		_, err := insist(ctx, func() (order.Page, error) { return s.Orders(ctx, order.Filter{Limit: 5}) })
		return err
	default:
		_, err := insist(ctx, func() (order.Order, error) { return s.Order(ctx, id, "") })
		return err
	}
	return nil
}
