package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/waitlist"
)

// ErrStopping says that the order was waiting for units when the service was about to stop. It
// had no effect.
var ErrStopping = errors.New("order: the service is stopping")

// ErrNotWaiting means, alongside the [*stock.ShortageError], that the order did not wait for units: as many wait as
// may, for that SKU or of that customer.
var ErrNotWaiting = waitlist.ErrFull

// wait waits for the units that req is short of, until the given time.
func (s *Service) wait(e entry, short error, async bool, until time.Time) error {
	ctx, req := e.ctx, e.Request
	if s.waitlist == nil {
		return short
	}
	if answered, err := s.answered(ctx, req.Key); answered != nil || err != nil {
		return errors.Join(answered, err) // a repetition does not stand in line for what it has
	}
	waiting, cancel := context.WithDeadlineCause(ctx, until, errMaxWait)
	defer cancel()
	waiting, stop := context.WithCancelCause(waiting)
	defer stop(nil)
	if s.stopping != nil {
		defer context.AfterFunc(s.stopping, func() { stop(ErrStopping) })()
	}
	for {
		missing, _ := shortage(short)
		moved := false // what is missing now is another SKU
		last := short  // why the latest try was refused
		err := s.waitlist.Wait(waiting, missing.SKU, waitlist.Claim{
			Owner: req.Order.CustomerID,
			Poll: func(ctx context.Context) (bool, error) {
				if answered, err := s.answered(ctx, req.Key); answered != nil || err != nil {
					return true, err
				}
				l, err := s.store.Level(ctx, missing.SKU)
				return l.Available() >= missing.Requested, err
			},
			Try: func(context.Context) (bool, error) {
				// With the deadline of ctx: an attempt that has begun is not stopped when the maximum wait is over.
				if answered, err := s.answered(ctx, req.Key); answered != nil || err != nil {
					return false, errors.Join(answered, err)
				}
				last = s.admitAgain(e, async)
				still, ok := shortage(last)
				switch {
				case ok:
					short, moved = last, still.SKU != missing.SKU
					return moved, nil
				case errors.Is(last, ErrConcurrencyLimit):
					return false, nil
				}
				return last == nil, last
			},
		})
		switch {
		case moved && err == nil:
			continue
		case errors.Is(err, errMaxWait):
			return last
		case errors.Is(err, waitlist.ErrFull):
			return fmt.Errorf("%w: %w", ErrNotWaiting, short)
		}
		return deadline(err)
	}
}

// shortage returns the first SKU that err says an order is short of.
func shortage(err error) (stock.Shortage, bool) {
	if short, ok := errors.AsType[*stock.ShortageError](err); ok {
		return short.Shortages[0], true
	}
	return stock.Shortage{}, false
}

// answered returns the answer that an equal request got meanwhile at another instance, as the
// error that says so.
func (s *Service) answered(ctx context.Context, once *idempotency.Request) (answered, err error) {
	if once == nil {
		return nil, nil
	}
	a, found, err := s.store.Answer(ctx, once)
	if err != nil || !found {
		return nil, err
	}
	return &idempotency.AnsweredError{Answer: a}, nil
}

// errMaxWait ends the wait for units.
var errMaxWait = errors.New("order: the maximum wait is over")

// returned notifies the waiting customers that units of skus were released.
func (s *Service) returned(skus ...string) {
	if s.waitlist != nil && len(skus) > 0 {
		s.waitlist.Notify(skus...)
	}
}
