package order_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// firingDelays collects firing delays.
type firingDelays struct {
	timeout.NopObserver
	mu    sync.Mutex
	early int           // guarded by mu
	worst time.Duration // guarded by mu
}

func (l *firingDelays) Fired(_ string, late time.Duration, _ timeout.Fired) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worst = max(l.worst, late)
	if late < 0 {
		l.early++
	}
}

// expiring returns a service on the database whose orders expire by a queue that
// runs until the test ends, and that queue.
func expiring(t *testing.T, url string, c order.Config, o timeout.Observer) (*order.Service, *sqlstore.Store, *timeout.Queue) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "one"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	timers, err := store.Timers()
	if err != nil {
		t.Fatal(err)
	}
	q, err := timeout.New(timers, memindex.New(memindex.Config{}), timeout.Config{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	store = store.WithTimers(q)
	svc := order.NewService(store, stock.NewStrategies(stock.Lockers{}), c)
	if err := q.Handle(order.ExpireTimer, svc.Expire, timeout.Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	return svc, store, q
}

// Customers pay at once, or just before, at, or just after the moment when their orders expire. Each order is either
// paid or released, and no timer is left over.
func TestQueueExpiresWhatIsNotPaid(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]string{
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "shop.db"), "mariadb": testbedtest.Database(t),
	} {
		t.Run(engine, func(t *testing.T) {
			seen := new(firingDelays)
			svc, store, q := expiring(t, url, order.Config{TTL: time.Second}, seen)
			orders := testbedtest.Size(200, 2_000)
			if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "a", Strategy: "conditional", OnHand: int64(orders)}); err != nil {
				t.Fatal(err)
			}
			paid := sell(t, svc, orders)
			for end := time.Now().Add(2 * time.Minute); ; {
				rows, err := q.List(t.Context(), timeout.Filter{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("timers are left over: %+v", rows)
				}
				<-time.After(10 * time.Millisecond)
			}
			exact(t, store, "a", paid)
			if l, err := store.Level(t.Context(), "a"); err != nil || l.Reserved != 0 || l.OnHand != int64(orders)-paid {
				t.Errorf("%+v, %v", l, err)
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			t.Logf("%d of %d paid; a timer was at most %v late", paid, orders, seen.worst)
			if seen.early > 0 {
				t.Errorf("%d timers fired before their time", seen.early)
			}
		})
	}
}

// persistent asks again while the database is busy, as the response advises.
func persistent(ask func() (order.Order, error)) (order.Order, error) {
	for end := time.Now().Add(soon); ; {
		o, err := ask()
		if !errors.Is(err, stock.ErrBusy) || time.Now().After(end) {
			return o, err
		}
	}
}

// sell places orders from several sides, tries to pay each at once or about when
// it expires, and returns how many were paid.
func sell(t *testing.T, svc *order.Service, orders int) (paid int64) {
	t.Helper()
	const buyers = 10
	var (
		group sync.WaitGroup
		mu    sync.Mutex
	)
	for range buyers {
		group.Go(func() {
			var payments sync.WaitGroup
			defer payments.Wait()
			for i := range orders / buyers {
				o, err := persistent(func() (order.Order, error) {
					return svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")})
				})
				if err != nil {
					t.Error(err)
					return
				}
				when := time.Until(o.ExpiresAt) + time.Duration(i%20-14)*5*time.Millisecond
				if i%3 == 0 {
					when = 0
				}
				payments.Go(func() {
					<-time.After(when)
					_, err := persistent(func() (order.Order, error) { return svc.Pay(t.Context(), order.Target{ID: o.ID}, "p1") })
					if e, ok := errors.AsType[*order.StateError](err); ok && e.Order.Status == order.Expired {
						return
					}
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					paid++
				})
			}
		})
	}
	group.Wait()
	return paid
}
