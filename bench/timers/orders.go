package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const (
	skus       = 10
	expireMany = 200 // orders of one transaction
)

// shop is a database with orders that wait for payment.
type shop struct {
	db     *sqlstore.Store
	orders *sqlstore.Store // with timers
	ids    []string
	last   time.Time // when the last of them is due
}

// expiring measures orders per second through index, queue and database. The time starts when all n are due, and ends
// with the commit that releases the last unit.
func expiring(ctx context.Context, on *servers, n int, wait time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	watch := &repairs{}
	o, err := openOurs(ctx, on, inMaria, timeout.Config{Observer: watch})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	s := &shop{db: o.db, orders: o.db.WithTimers(o.q)}
	e := &expired{expire: order.NewService(s.orders, stock.NewStrategies(stock.Lockers{}), order.Config{}).Expire, want: n, ids: map[string]bool{}, all: make(chan time.Time, 1)}
	if err := o.q.Handle(order.ExpireTimer, e.handle, timeout.Options{Batch: expireMany}); err != nil {
		return sample{}, err
	}
	o.run(ctx)
	if err := s.place(ctx, n, time.Now().Add(wait)); err != nil {
		return sample{}, err
	}
	before := e.count() // placing took longer than it should, and some were due before the last was placed
	var end time.Time
	select {
	case end = <-e.all:
	case <-time.After(time.Until(s.last) + patience):
		return sample{}, fmt.Errorf("not all of %d orders have expired after %v", n, patience)
	}
	took := end.Sub(s.last)
	return sample{
		rate: float64(n-before) / took.Seconds(), n: float64(n), took: float64(took.Microseconds()),
		swept: float64(watch.swept.Load()),
		min:   float64(e.first.Sub(s.last).Nanoseconds()) / 1e3,
	}, s.check(ctx)
}

// repairs counts what the overdue scan handled because it had not come from the index in time.
type repairs struct {
	timeout.NopObserver
	swept atomic.Int64
}

// Repaired implements [timeout.Observer].
func (r *repairs) Repaired(_ string, why timeout.Reason, n int) {
	if why == timeout.RepairOverdue {
		r.swept.Add(int64(n))
	}
}

// expired counts orders, and each once: a handler may be called again for what has
// expired, and answers the same.
type expired struct {
	expire timeout.Handler
	want   int
	all    chan time.Time // gets the moment of the last one

	mu    sync.Mutex
	first time.Time // when the handler was called first
	ids   map[string]bool
}

func (e *expired) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.ids)
}

func (e *expired) handle(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	e.mu.Lock()
	if e.first.IsZero() {
		e.first = time.Now()
	}
	e.mu.Unlock()
	outcomes, err := e.expire(ctx, batch)
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.ids)
	for i, o := range outcomes {
		if o == timeout.Committed() {
			e.ids[batch[i].ID] = true
		}
	}
	if before < e.want && len(e.ids) == e.want {
		e.all <- time.Now()
	}
	return outcomes, err
}

// alone measures orders per second of the transactions that expire them, without a
// queue: four at once, one after the other.
func alone(ctx context.Context, on *servers, n int) (result sample, err error) {
	o, err := openOurs(ctx, on, inMaria, timeout.Config{Canary: true})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	s := &shop{db: o.db, orders: o.db.WithTimers(o.q)}
	if err := s.place(ctx, n, time.Now()); err != nil {
		return sample{}, err
	}
	start := time.Now()
	err = inChunks(n, expireMany, func(from, until int) error { return s.expire(ctx, s.ids[from:until]) })
	took := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	return sample{rate: float64(n) / took.Seconds(), n: float64(n), took: float64(took.Microseconds())}, s.check(ctx)
}

// expire expires the orders. As the queue does, it asks again for one that was not due to the
// millisecond or whose row was locked.
func (s *shop) expire(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		found, err := s.orders.Expire(ctx, ids)
		if err != nil {
			return err
		}
		var left []string
		for i, e := range found {
			if e.Status != order.Expired {
				left = append(left, ids[i])
			}
		}
		ids = left
	}
	return nil
}

func skuOf(i int) string { return fmt.Sprintf("sku-%d", i%skus) }

// place stores n orders of one unit that are all due at the same moment.
func (s *shop) place(ctx context.Context, n int, due time.Time) error {
	for i := range skus {
		if _, _, err := s.db.CreateSKU(ctx, stock.Level{SKU: skuOf(i), OnHand: int64(n), Strategy: "conditional"}); err != nil {
			return err
		}
	}
	const chunk = 100
	s.ids, s.last = make([]string, n), due
	err := inChunks(n, chunk, func(from, until int) error {
		sku := skuOf(from / chunk)
		var requests []*order.Request
		for i := from; i < until; i++ {
			s.ids[i] = order.NewID()
			requests = append(requests, &order.Request{
				Order: order.Order{ID: s.ids[i], CustomerID: "c", Items: []order.Item{{SKU: sku, Quantity: 1}}},
				TTL:   max(0, time.Until(due)),
			})
		}
		claims := []stock.Claim{{SKU: sku, Update: stock.Conditional}}
		if err := s.orders.Commit(ctx, &order.Batch{Claims: claims, Requests: requests}); err != nil {
			return err
		}
		for _, r := range requests {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
	if now := time.Now(); now.After(s.last) {
		s.last = now
	}
	return err
}

// check fails unless all units were released and the audit finds no broken invariant.
func (s *shop) check(ctx context.Context) error {
	audits, err := s.db.Audit(ctx, "")
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range audits {
		if !a.OK() || a.Open != 0 {
			errs = append(errs, fmt.Errorf("%+v: %q", a, a.Broken()))
		}
	}
	return errors.Join(errs...)
}
