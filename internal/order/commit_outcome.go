package order

import (
	"context"
	"errors"
	"slices"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// outcome answers the orders of p, or puts them back if they are to be tried again.
func (q *commitQueue) outcome(p *part, err error) {
	u := p.unit
	if err != nil {
		if reason := retryable(err); reason != nil {
			q.observer.Retried(p.ctx, reason)
		}
		if e, ok := errors.AsType[*stock.FencedError](err); ok {
			err = q.fenced(p.entries[0], e)
		}
	}
	switch {
	case errors.Is(err, ErrCommitAlone):
		for _, e := range p.entries {
			e.flight.block(errors.Is(err, ErrRowSuspect))
		}
		u.apart = append(u.apart, p.entries...)
	case err != nil && (u.ctx.Err() != nil || anotherTry(err)):
		u.err = err
		q.putBack(u.lane, p.entries, err)
	case u.counted:
		u.decided = append(u.decided, settlement{p.entries, err})
	default:
		q.settle(u.lane, p.entries, err)
	}
}

// fenced returns the error of orders that a row refused with e. They are not tried again if the tokens of the lock
// service cannot exceed that of the row by the deadline of the first order.
func (q *commitQueue) fenced(first *entry, e *stock.FencedError) error {
	offer := q.offers.of(e.Refused.SKU)
	q.publisher.Fenced(offer.Strategy.Name, e)
	q.offers.rebased(e)
	if err := first.lag.refused(first.ctx, e); err != nil && !offer.Strategy.RaisesCounter {
		return err
	}
	return e
}

// dismiss answers those of the first orders of l, up to seq, that judge has an error for.
func (q *commitQueue) dismiss(l *lane, seq uint64, judge func(*entry) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if e.seq > seq {
			return false
		}
		err := judge(e)
		if err == nil {
			return false
		}
		e.out = true
		e.answer <- err
		return true
	})
}

// refuse answers those orders of l that want more units than there are. It reads the level only if units were short lately. One read is
// enough for all orders that waited before it. It refuses no order with an unknown outcome.
func (q *commitQueue) refuse(ctx context.Context, l *lane) {
	sku := l.key.sku
	if _, short := q.short.Load(sku); !short || !q.waitsIn(l) {
		return
	}
	q.mu.Lock()
	seq := q.seq // before the read, which must not refuse orders that come after it
	q.mu.Unlock()
	level, err := q.store.Level(ctx, sku)
	if err != nil {
		return
	}
	left := max(0, level.Available())
	if left > 0 {
		q.short.Delete(sku)
	}
	q.dismiss(l, seq, func(e *entry) error {
		if wanted := e.Order.Items[0].Quantity; e.last == nil && wanted > left {
			return &stock.ShortageError{Shortages: []stock.Shortage{{SKU: sku, Requested: wanted, Available: left}}}
		}
		return nil
	})
}

// forAll reports whether err is everybody's: it would be the same with fewer orders.
func forAll(err error) bool {
	return errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrFencesLost) || errors.Is(err, stock.ErrRowLocked)
}

// anotherTry reports whether orders that failed with err are to be tried again under new locks.
func anotherTry(err error) bool {
	return errors.Is(err, ErrOutcomeUnknown) || retryable(err) != nil && !forAll(err)
}

// retryable returns the reason for which err may be answered by another
// attempt, or nil.
func retryable(err error) error {
	for _, reason := range []error{dlock.ErrFenced, dlock.ErrLost, stock.ErrConflict} {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return nil
}
