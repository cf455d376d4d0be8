package sqlstore

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/sqltimers"
)

// Scheduler keeps the timers of orders in the transactions that the orders themselves are changed in. [*timeout.Queue]
// is one. push sends timers that are due soon to the index. It is called after the commit and may be omitted.
type Scheduler interface {
	// Schedule stores timers. One that is stored already gets the new due time.
	Schedule(ctx context.Context, tx timeout.Tx, timers ...timeout.Timer) (push func(), err error)

	// Cancel deletes timers.
	Cancel(ctx context.Context, tx timeout.Tx, kind string, ids ...string) error
}

// Timers returns the timers that are stored in the same database, on the same
// connections.
func (s *Store) Timers() (*sqltimers.Store, error) {
	return sqltimers.New(s.pool, s.engine.Engine)
}

// WithTimers returns a store on the same connections that keeps a timer with
// every order that waits for payment. Without timers such orders read as expired
// in time, but nothing gives their units back.
func (s *Store) WithTimers(q Scheduler) *Store {
	c := *s
	c.timers = q
	return &c
}

// timerOf returns the kind of the timer that an order has while it is s.
func timerOf(s order.Status) string {
	if s == order.Queued {
		return order.PlaceTimer
	}
	return order.ExpireTimer
}

// noTimers ignores all timers.
type noTimers struct{}

func (noTimers) Schedule(context.Context, timeout.Tx, ...timeout.Timer) (func(), error) {
	return func() {}, nil
}

func (noTimers) Cancel(context.Context, timeout.Tx, string, ...string) error { return nil }
