package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// ExpireTimer is the kind of the timers that end the wait for a payment. The id of each is that of its order.
const ExpireTimer = "order.expire"

// Timer returns the timer that is to fire when o expires. Timers count milliseconds and orders microseconds, so it is due up to a
// millisecond later, never earlier.
func (o Order) Timer() timeout.Timer {
	due := o.ExpiresAt.Truncate(time.Millisecond)
	if due.Before(o.ExpiresAt) {
		due = due.Add(time.Millisecond)
	}
	return timeout.Timer{Kind: ExpireTimer, ID: o.ID, Due: due}
}

// Expiry is what [Store.Expire] found out about an order.
type Expiry struct {
	// Status is the state of the order now. It is empty when there is no such
	// order, or Again is not 0, and Pending when the order has not expired yet.
	Status Status

	// Again is after how long to try again, because another transaction has locked the
	// order or its stock; 0 if none has. Nothing has changed then.
	Again time.Duration

	// Timer is the timer of an order that is Pending; it is zero for others.
	Timer timeout.Timer

	// Ended is the order if this call has expired it; nil if not.
	Ended *Order
}

// Extend gives a pending order that has not expired more time to be paid:
// by is added to its ExpiresAt. It blocks until that is stored, or ctx ends.
//
// It returns [ErrInvalid] if by is not positive, or if the order would live longer than Config.MaxLife. It returns
// [ErrNotFound], [*StateError] with the stored order, or an error of [idempotency], [stock.ErrBusy] or
// [stock.ErrUnavailable]. After these nothing has changed. After [ErrOutcomeUnknown] something may have.
func (s *Service) Extend(ctx context.Context, t Target, by time.Duration) (Order, error) {
	longest := s.longest()
	if by <= 0 || by > longest {
		return Order{}, fmt.Errorf("%w: an extension of %s is not between 1s and %s", ErrInvalid, by, longest)
	}
	o, changed, err := s.store.Extend(ctx, t, by, longest)
	switch {
	case err != nil:
		return Order{}, deadline(err)
	case !changed && o.Status != Pending:
		return Order{}, &StateError{Order: o}
	case !changed:
		return Order{}, fmt.Errorf("%w: the order would live longer than %s", ErrInvalid, longest)
	}
	s.publisher.Changed(o)
	return o, nil
}

// Expire is the [timeout.Handler] of ExpireTimer: it gives the units of unpaid orders back. It may be called for any order at any time, and
// as often as anybody likes: the orders' rows decide.
//
// An order whose rows another transaction has locked is tried again until it succeeds, and the rest of the batch does
// not wait for it. A store that does not answer is reported as [timeout.ErrUnavailable]. Neither is a timer's fault.
// For any other error, the queue searches the batch for the faulty timer.
func (s *Service) Expire(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	ids := make([]string, len(batch))
	for i, f := range batch {
		ids[i] = f.ID
	}
	found, err := s.store.Expire(ctx, ids)
	outcomes := make([]timeout.Outcome, len(batch))
	if errors.Is(err, stock.ErrBusy) {
		for i := range outcomes {
			outcomes[i] = again(busyPause, batch[i])
		}
		return outcomes, nil
	}
	if errors.Is(err, stock.ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
		return nil, fmt.Errorf("%w: %w", timeout.ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	for i, e := range found {
		s.ended(e.Ended)
		switch {
		case e.Again > 0:
			outcomes[i] = again(e.Again, batch[i])
		case e.Status == "":
			outcomes[i] = timeout.Done()
		case e.Status == Pending:
			outcomes[i] = timeout.NotDue(e.Timer.Due)
		default:
			outcomes[i] = timeout.Committed()
		}
	}
	return outcomes, nil
}

const (
	busyPause = time.Second     // how long a store that was busy is left alone
	mostPause = 5 * time.Second // until an order that is long overdue is tried again
)

// again is that an order is tried again after a pause, which grows to a quarter of the time by which it is overdue. So many
// orders that wait for one row leave others their turns.
func again(pause time.Duration, f timeout.Fired) timeout.Outcome {
	return timeout.Again(max(pause, min(mostPause, time.Since(f.Due)/4)))
}

// ended reports that an order has expired and its units are released.
func (s *Service) ended(o *Order) {
	if o == nil {
		return
	}
	for _, it := range o.Items {
		s.returned(it.SKU)
	}
	s.publisher.Changed(*o)
}
