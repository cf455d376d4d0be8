package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// withRows measures timers per second that are stored in a database, and then pushed
// to the index, so many in one transaction.
func withRows(ctx context.Context, on *servers, engine string, goroutines, chunk int, d time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	db, drop, err := on.database(ctx, engine)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{Canary: true}) // it schedules, and nothing else
	if err != nil {
		return sample{}, err
	}
	o.run(ctx)
	defer func() { err = cmp.Or(err, o.stop()) }()
	before, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	var next atomic.Int64
	start := time.Now()
	err = together(goroutines, func(int) error {
		timers := make([]timeout.Timer, chunk)
		for time.Since(start) < d {
			for i := range timers {
				timers[i] = timeout.Timer{Kind: kind, ID: idOf(int(next.Add(1))), Due: time.Now().Add(unpaid)}
			}
			push, err := o.q.Schedule(ctx, nil, timers...)
			if err != nil {
				return err
			}
			push()
		}
		return nil
	})
	took := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	after, err := on.redis.Usage(ctx)
	result = sample{rate: float64(next.Load()) / took.Seconds(), n: float64(next.Load())}
	result.redis, result.own = share(before, after, took)
	return result, err
}

// rebuilding measures how long it takes to tell an empty index of n rows.
func rebuilding(ctx context.Context, on *servers, engine string, n int) (result sample, err error) {
	db, drop, err := on.database(ctx, engine)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	const chunk = 1000
	var next atomic.Int64
	due, start := time.Now().Add(unpaid), time.Now()
	err = together(4, func(int) error {
		for from := int(next.Add(chunk)) - chunk; from < n; from = int(next.Add(chunk)) - chunk {
			timers := make([]timeout.Timer, 0, chunk)
			for i := from; i < min(n, from+chunk); i++ {
				timers = append(timers, timeout.Timer{Kind: kind, ID: idOf(i), Due: due.Add(time.Duration(i) * time.Millisecond).Truncate(time.Millisecond)})
			}
			if err := rows.Insert(ctx, nil, timeout.Base, "", timers); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	inserted := time.Since(start)
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.stop()) }()
	start = time.Now()
	found, err := o.q.Rebuild(ctx, kind)
	took := time.Since(start)
	if err == nil && found != n {
		err = fmt.Errorf("%d of %d timers were rebuilt", found, n)
	}
	return sample{took: float64(took.Microseconds()), n: float64(n), rate: float64(n) / took.Seconds(), scheduled: float64(n) / inserted.Seconds()}, err
}

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

// expiring measures orders per second from the moment at which all of n are due to
// the commit that gives the last unit back, through index, queue and database.
func expiring(ctx context.Context, on *servers, n int, wait time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	db, drop, err := on.database(ctx, inMaria)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.stop()) }()
	s := &shop{db: db, orders: db.WithTimers(o.q)}
	var first atomic.Int64
	all, left := make(chan time.Time, 1), atomic.Int64{}
	left.Store(int64(n))
	expire := order.NewService(s.orders, nil, order.Config{}).Expire
	err = o.q.Handle(order.ExpireTimer, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		first.CompareAndSwap(0, time.Now().UnixNano())
		outcomes, err := expire(ctx, batch)
		for _, o := range outcomes {
			if o == timeout.Committed() && left.Add(-1) == 0 {
				all <- time.Now()
			}
		}
		return outcomes, err
	}, timeout.Options{Batch: expireMany})
	if err != nil {
		return sample{}, err
	}
	o.run(ctx)
	if err := s.place(ctx, n, time.Now().Add(wait)); err != nil {
		return sample{}, err
	}
	var end time.Time
	select {
	case end = <-all:
	case <-time.After(time.Until(s.last) + patience):
		return sample{}, fmt.Errorf("%d of %d orders did not expire", left.Load(), n)
	}
	took := end.Sub(s.last)
	return sample{
		rate: float64(n) / took.Seconds(), n: float64(n), took: float64(took.Microseconds()),
		min: float64(first.Load()-s.last.UnixNano()) / 1e3,
	}, s.check(ctx)
}

// alone measures orders per second of the transactions that expire them, without a
// queue: four at once, one after the other.
func alone(ctx context.Context, on *servers, n int) (result sample, err error) {
	db, drop, err := on.database(ctx, inMaria)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, drop(ctx)) }()
	rows, err := db.Timers()
	if err != nil {
		return sample{}, err
	}
	o, err := newOurs(on, rows, timeout.Config{Canary: true})
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.stop()) }()
	s := &shop{db: db, orders: db.WithTimers(o.q)}
	if err := s.place(ctx, n, time.Now()); err != nil {
		return sample{}, err
	}
	var next atomic.Int64
	start := time.Now()
	err = together(4, func(int) error {
		for {
			from := int(next.Add(expireMany)) - expireMany
			if from >= n {
				return nil
			}
			if _, err := s.orders.Expire(ctx, s.ids[from:min(n, from+expireMany)]); err != nil {
				return err
			}
		}
	})
	took := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	return sample{rate: float64(n) / took.Seconds(), n: float64(n), took: float64(took.Microseconds())}, s.check(ctx)
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
	var next atomic.Int64
	err := together(4, func(int) error {
		for c := int(next.Add(1)) - 1; c*chunk < n; c = int(next.Add(1)) - 1 {
			requests := make([]*order.Request, 0, chunk)
			for i := c * chunk; i < min(n, (c+1)*chunk); i++ {
				s.ids[i] = order.NewID()
				requests = append(requests, &order.Request{
					Order: order.Order{ID: s.ids[i], CustomerID: "c", Items: []order.Item{{SKU: skuOf(c), Quantity: 1}}},
					TTL:   max(0, time.Until(due)),
				})
			}
			claims := []stock.Claim{{SKU: skuOf(c), Write: stock.Conditional, Fence: dlock.Fence{}}}
			if err := s.orders.Commit(ctx, claims, requests); err != nil {
				return err
			}
			for _, r := range requests {
				if r.Err != nil {
					return r.Err
				}
			}
		}
		return nil
	})
	if now := time.Now(); now.After(s.last) {
		s.last = now
	}
	return err
}

// check fails unless all units are back and the books are in order.
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
