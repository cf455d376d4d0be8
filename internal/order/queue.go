package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// PlaceTimer is the kind of the timers that try to place queued orders. The id of each is
// that of its order.
const PlaceTimer = "order.place"

const (
	queuePause    = 50 * time.Millisecond  // until a queued order is tried first
	queueAgain    = 100 * time.Millisecond // between tries, and up to twice as long
	queueLockWait = time.Second            // that a try has for its locks, in which it has a place in their queues
	queueTries    = 8                      // at once, of a batch
)

// PlaceQueued is the [timeout.Handler] of PlaceTimer: it tries to place the queued orders. Each
// becomes [Pending] or [Rejected], unless it was cancelled; or it is tried again, until its
// time is over.
func (s *Service) PlaceQueued(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	outcomes := make([]timeout.Outcome, len(batch))
	var tries errgroup.Group
	tries.SetLimit(queueTries)
	for i, f := range batch {
		tries.Go(func() (err error) {
			outcomes[i], err = s.placeQueued(ctx, f)
			return err
		})
	}
	if err := tries.Wait(); err != nil {
		// Those that were placed have no timers any more.
		return nil, errors.Join(timeout.ErrUnavailable, err)
	}
	return outcomes, nil
}

// placeQueued tries to place one order. An error means that a store does not answer. Any other failure, also a panic,
// fails this order only.
func (s *Service) placeQueued(ctx context.Context, f timeout.Fired) (outcome timeout.Outcome, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			outcome, err = timeout.Retry(0, fmt.Errorf("order: place %s: panic: %v", f.ID, cause)), nil
		}
	}()
	ctx, span := s.tracer.Start(ctx, "order.place_queued", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attribute.String("order.id", f.ID)))
	defer span.End()
	o, err := s.store.Order(ctx, f.ID, "")
	switch {
	case errors.Is(err, ErrNotFound):
		return timeout.Done(), nil
	case err != nil:
		return timeout.Outcome{}, err
	case o.Status == Rejected && o.Reason == NotInTime:
		return s.reject(ctx, o, NotInTime) // so it reads; now it is written
	case o.Status != Queued:
		return timeout.Done(), nil
	}
	err = s.try(ctx, o)
	mark(span, err)
	_, short := errors.AsType[*stock.ShortageError](err)
	_, over := errors.AsType[*LimitError](err)
	_, moved := errors.AsType[*StateError](err)
	switch {
	case err == nil:
		s.observer.Placed(ctx, s.offers.strategy(o.Items), nil)
		return timeout.Committed(), nil
	case moved:
		return timeout.Done(), nil
	case short:
		return s.reject(ctx, o, OutOfStock)
	case over:
		return s.reject(ctx, o, OverLimit)
	case errors.Is(err, stock.ErrStrategyUnavailable), errors.Is(err, stock.ErrLockAway):
		return timeout.Again(queueAgain), nil // another instance may have the store, or reach it
	case errors.Is(err, stock.ErrBusy), errors.Is(err, ErrConcurrencyLimit):
		return timeout.Again(queueAgain), nil
	case errors.Is(err, stock.ErrUnavailable), errors.Is(err, ErrOutcomeUnknown), ctx.Err() != nil:
		return timeout.Outcome{}, err
	}
	return timeout.Retry(0, err), nil
}

// try makes one attempt.
func (s *Service) try(ctx context.Context, o Order) error {
	offers, err := s.offers.all(ctx, o.Items)
	if err != nil {
		return err
	}
	req := &Request{Order: o, TTL: s.TTL(), MaxOpen: s.maxOpen, Queued: true}
	e := entry{Request: req, ctx: ctx, offers: offers, lockBy: time.Now().Add(queueLockWait)}
	if err := s.admit(e, false); err != nil {
		return err
	}
	s.publisher.Changed(req.Order)
	return nil
}

func (s *Service) reject(ctx context.Context, o Order, why Reason) (timeout.Outcome, error) {
	if err := s.store.Reject(ctx, o.ID, why); err != nil {
		return timeout.Outcome{}, err
	}
	if now, err := s.store.Order(ctx, o.ID, ""); err == nil { // it may have been cancelled instead
		s.publisher.Changed(now)
	}
	o.Status, o.Reason = Rejected, why
	s.observer.Placed(ctx, s.offers.strategy(o.Items), &StateError{Order: o})
	return timeout.Committed(), nil
}
