package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/party"
	"example.com/shop/internal/stock"
)

// Purchase is an order that is asked for.
type Purchase struct {
	Customer string
	Items    []Item               // items that name the same SKU are added up
	Key      *idempotency.Request // the key of the request, or nil
	Prefer   Preference
}

// Preference is what a customer prefers when an order cannot be placed at once (RFC 7240).
// The zero value waits for locks as long as the context allows, and not for units.
type Preference struct {
	// Wait is the maximum wait for units of a SKU that is sold out. With Bounded it is that for each lock, too, and with
	// zero the order waits for nothing.
	Bounded bool
	Wait    time.Duration

	// Async asks to be queued when a lock was not free in time; without Bounded, at once.
	Async bool
}

// ErrConcurrencyLimit means that too many orders are in flight. The order had no effect.
var ErrConcurrencyLimit = permits.ErrConcurrencyLimit

// ErrCrowded means that too many orders of one SKU are in flight at this instance. The order had no effect. It matches
// [ErrConcurrencyLimit].
var ErrCrowded = fmt.Errorf("order: too many orders of one SKU at once: %w", ErrConcurrencyLimit)

// ErrServiceCrowded means that too many orders that need one lock service are in flight at this instance. The order had no
// effect. It matches [ErrConcurrencyLimit].
var ErrServiceCrowded = fmt.Errorf("order: too many orders of one lock service at once: %w", ErrConcurrencyLimit)

// ErrOverloaded means that as many orders are in flight at this instance as it can serve at once, by its measurements. The order
// had no effect. It matches [ErrConcurrencyLimit].
var ErrOverloaded = fmt.Errorf("order: the instance is overloaded: %w", ErrConcurrencyLimit)

// ErrCustomerBusy means that the transaction of another order of this customer has locked the customer's row. The order
// had no effect. It matches [stock.ErrBusy].
var ErrCustomerBusy = fmt.Errorf("order: another order of the customer is being placed: %w", stock.ErrBusy)

// ErrQueued is reported to an [Observer] for an order that was put into the queue. The observer is notified of the
// order again when it leaves the queue. No operation returns ErrQueued.
var ErrQueued = errors.New("order: queued")

// Place promises the items to the customer, all or none, until the order expires.
//
// It blocks until the locks of all SKUs are held and the order is stored, or ctx ends. ctx should have a deadline for the work beyond
// p.Prefer. If a SKU is sold out, the order waits as long as p.Prefer allows. Waiting orders are served in their order of arrival, but a
// newcomer may be quicker. A customer that waits for units holds no permit and no lock. If too many wait already, the order is refused at
// once, with [ErrNotWaiting] alongside the shortage. An order that was put into the queue is returned as [Queued].
//
// Errors: [ErrInvalid], [*UnknownSKUError], [stock.ErrStrategyUnavailable], [*stock.ShortageError], [*LimitError], those of [idempotency],
// [ErrConcurrencyLimit], [ErrCrowded], [ErrServiceCrowded], [ErrOverloaded], [ErrStopping], [stock.ErrLockHeld], [stock.ErrBusy], [stock.ErrUnavailable], the cause of ctx's end.
// After any of them no order exists. Only [ErrOutcomeUnknown] leaves that open, and comes with the id that the order would have.
func (s *Service) Place(ctx context.Context, p Purchase) (o Order, err error) {
	ctx, span := s.tracer.Start(ctx, "order.place")
	defer span.End()
	var items []Item
	defer func() {
		mark(span, err)
		outcome := err
		if err == nil && o.Status == Queued {
			outcome = ErrQueued
		}
		s.observer.Placed(ctx, s.offers.strategy(items), outcome)
	}()
	if !party.ValidID(p.Customer) {
		return Order{}, fmt.Errorf("%w: customer id %q", ErrInvalid, p.Customer)
	}
	items, err = merge(p.Items)
	if err != nil {
		return Order{}, err
	}
	offers, err := s.offers.all(ctx, items)
	if err != nil {
		return Order{}, err
	}
	req := &Request{
		Order: Order{ID: NewID(), CustomerID: p.Customer, Items: items},
		TTL:   s.TTL(), MaxOpen: s.maxOpen, Key: p.Key,
	}
	span.SetAttributes(attribute.String("order.id", req.Order.ID), attribute.Int("order.skus", len(items)))
	until := time.Now().Add(p.Prefer.Wait)
	mine := entry{Request: req, ctx: ctx, offers: offers}
	if p.Prefer.Bounded || p.Prefer.Async {
		mine.lockBy = until
	}
	err = s.admitAgain(mine, p.Prefer.Async)
	if short, ok := errors.AsType[*stock.ShortageError](err); ok && p.Prefer.Wait > 0 {
		err = s.wait(mine, short, p.Prefer.Async, until)
	}
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		return Order{ID: req.Order.ID}, err
	case err != nil:
		return Order{}, err
	}
	s.publisher.Changed(req.Order)
	return req.Order, nil
}

const (
	customerWait  = 2 * time.Second        // for a customer of whom another order is being placed
	customerPause = 256 * time.Millisecond // longest pause between two attempts
)

// admitAgain is admit, repeated for customerWait while another order of the customer is being placed. Between two attempts the order has
// no permit, no lock and no connection, as orders of other customers could use them.
func (s *Service) admitAgain(e entry, async bool) error {
	pause := time.Millisecond
	for end := time.Now().Add(customerWait); ; {
		err := s.admit(e, async)
		if !errors.Is(err, ErrCustomerBusy) || time.Now().After(end) {
			return err
		}
		if !backoff.Sleep(e.ctx, pause/2+rand.N(pause)) {
			return deadline(errors.Join(context.Cause(e.ctx), err))
		}
		pause = min(2*pause, customerPause)
	}
}

// admit commits the order of e under a permit and its locks, and returns why it was refused. With async it is put into
// the queue if a lock was not free in time.
func (s *Service) admit(e entry, async bool) error {
	if s.permits != nil {
		leave, err := s.enter(&e)
		if err != nil {
			return err
		}
		defer leave()
	}
	attempt, copied := e, *e.Request // the transaction may continue with them after the time of this order is over
	copied.Err, copied.Answered = nil, false
	attempt.Request, attempt.answer = &copied, make(chan error, 1)
	err := s.queue.do(&attempt)
	if errors.Is(err, errLeft) {
		return err
	}
	*e.Request = copied
	switch {
	case err == nil, copied.Answered: // whatever becomes of the others
		for _, f := range e.flights {
			f.answered(e.Err)
		}
		return e.Err
	case async && errors.Is(err, stock.ErrLockHeld) && !errors.Is(err, ErrOutcomeUnknown):
		e.TTL = s.queueLife
		return s.store.Enqueue(e.ctx, e.Request, queuePause)
	}
	return deadline(err)
}
