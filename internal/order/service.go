package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// Observer is told what happens to orders. Its methods must not block.
type Observer interface {
	// Placed is called once per order that was asked for, with how it ended.
	Placed(ctx context.Context, err error)

	// Retried is called when an attempt was refused and is made again. reason
	// is [dlock.ErrFenced], [dlock.ErrLost] or [stock.ErrConflict].
	Retried(ctx context.Context, reason error)
}

// Config configures a Service.
type Config struct {
	TTL      time.Duration        // how long an order waits for payment; default 15 minutes
	MaxLife  time.Duration        // how long it may wait with all extensions; default four times TTL
	Tracer   trace.TracerProvider // default: no spans
	Observer Observer             // default: nobody
}

// Service places, pays, cancels, extends and expires orders. It is safe for concurrent use.
type Service struct {
	store      Store
	strategies *stock.Strategies
	ttl        time.Duration
	maxLife    time.Duration
	tracer     trace.Tracer
	observer   Observer
	names      sync.Map // SKU to the name of its strategy, which never changes
}

// NewService returns a service on store.
func NewService(store Store, strategies *stock.Strategies, c Config) *Service {
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	ttl := cmp.Or(c.TTL, 15*time.Minute)
	return &Service{
		store:      store,
		strategies: strategies,
		ttl:        ttl,
		maxLife:    cmp.Or(c.MaxLife, 4*ttl),
		tracer:     c.Tracer.Tracer("example.com/shop/internal/order"),
		observer:   c.Observer,
	}
}

// Place promises the items to the customer, all or none, until the order
// expires. Items that name the same SKU are added up.
//
// It blocks until the guards of all SKUs are held and the order is stored, or
// ctx ends; ctx should have a deadline. Errors: [ErrInvalid], [ErrUnknownSKU],
// [stock.ErrStrategyUnavailable], [*stock.ShortageError], [stock.ErrBusy],
// [stock.ErrUnavailable], the cause of ctx's end. After any of them no order
// exists. Only [ErrOutcomeUnknown] leaves that open, and comes with the id that
// the order would have.
func (s *Service) Place(ctx context.Context, customer string, items []Item) (o Order, err error) {
	ctx, span := s.tracer.Start(ctx, "order.place", trace.WithAttributes(attribute.Int("order.items", len(items))))
	defer span.End()
	defer func() {
		mark(span, err)
		s.observer.Placed(ctx, err)
	}()
	if !ValidName(customer) {
		return Order{}, fmt.Errorf("%w: customer id %q", ErrInvalid, customer)
	}
	if items, err = merge(items); err != nil {
		return Order{}, err
	}
	lines, err := s.lines(ctx, items)
	if err != nil {
		return Order{}, err
	}
	req := &Request{Order: Order{ID: NewID(), CustomerID: customer, Items: items}, TTL: s.ttl}
	span.SetAttributes(attribute.String("order.id", req.Order.ID))
	err = s.commit(ctx, lines, req)
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		return Order{ID: req.Order.ID}, err
	case err != nil:
		return Order{}, err
	case req.Err != nil:
		return Order{}, req.Err
	}
	return req.Order, nil
}

// lines looks up by which strategy each SKU is sold.
func (s *Service) lines(ctx context.Context, items []Item) ([]stock.Line, error) {
	lines := make([]stock.Line, len(items))
	for i, it := range items {
		name, ok := s.names.Load(it.SKU)
		if !ok {
			level, err := s.store.Level(ctx, it.SKU)
			if errors.Is(err, stock.ErrNotFound) {
				return nil, fmt.Errorf("%w %q", ErrUnknownSKU, it.SKU)
			}
			if err != nil {
				return nil, deadline(err)
			}
			name = level.Strategy
			s.names.Store(it.SKU, name)
		}
		st, err := s.strategies.Lookup(name.(string)) //nolint:errcheck,forcetypeassert // only strings are stored
		if err != nil {
			return nil, fmt.Errorf("%q: %w", it.SKU, err)
		}
		lines[i] = stock.Line{SKU: it.SKU, Strategy: st}
	}
	return lines, nil
}

// retryPause is the longest first pause before an attempt is repeated; the
// pause doubles up to 32 times that.
const retryPause = time.Millisecond

// commit places req under the guards of lines, and does it again under new
// guards when they were lost or somebody else was faster.
func (s *Service) commit(ctx context.Context, lines []stock.Line, req *Request) error {
	pause := retryPause
	for {
		guarded := false
		err := stock.Hold(ctx, lines, func(ctx context.Context, claims []stock.Claim) error {
			guarded = true
			return s.reserve(ctx, claims, req)
		})
		if errors.Is(err, ErrOutcomeUnknown) {
			return err // another attempt could end in an answer that is wrong about this one
		}
		reason := retryable(err)
		if reason == nil {
			if err != nil && !guarded && ctx.Err() == nil {
				return fmt.Errorf("%w: %w", stock.ErrUnavailable, err)
			}
			return deadline(err)
		}
		s.observer.Retried(ctx, reason)
		select {
		case <-ctx.Done():
			return deadline(errors.Join(context.Cause(ctx), err))
		case <-time.After(rand.N(pause)):
			pause = min(2*pause, 32*retryPause)
		}
	}
}

// reserve commits req with the claims that the guards gave.
func (s *Service) reserve(ctx context.Context, claims []stock.Claim, req *Request) error {
	ctx, span := s.tracer.Start(ctx, "stock.reserve", trace.WithAttributes(attribute.Int("stock.skus", len(claims))))
	defer span.End()
	err := s.store.Commit(ctx, claims, []*Request{req})
	mark(span, err)
	return err
}

// Order returns the order with the given id, or [ErrNotFound].
func (s *Service) Order(ctx context.Context, id string) (Order, error) {
	o, err := s.store.Order(ctx, id)
	return o, deadline(err)
}

// Pay confirms a pending order. Paying a confirmed order again with the same
// payment returns it unchanged. Errors: [ErrInvalid], [ErrNotFound],
// [*StateError] with the order as it stands, [stock.ErrBusy],
// [stock.ErrUnavailable].
func (s *Service) Pay(ctx context.Context, id, payment string) (Order, error) {
	if !ValidName(payment) {
		return Order{}, fmt.Errorf("%w: payment id %q", ErrInvalid, payment)
	}
	o, changed, err := s.store.Settle(ctx, id, Confirmed, payment)
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && (o.Status != Confirmed || o.PaymentID != payment) {
		return Order{}, &StateError{Order: o}
	}
	return o, nil
}

// Cancel gives the units of a pending order back. Cancelling a cancelled order
// returns it unchanged. Errors: [ErrNotFound], [*StateError] with the order as
// it stands, [stock.ErrBusy], [stock.ErrUnavailable].
func (s *Service) Cancel(ctx context.Context, id string) (Order, error) {
	o, changed, err := s.store.Settle(ctx, id, Cancelled, "")
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && o.Status != Cancelled {
		return Order{}, &StateError{Order: o}
	}
	return o, nil
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

// deadline gives a deadline that has passed the name that callers know.
func deadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, stock.ErrUnavailable) {
		return fmt.Errorf("%w: %w", stock.ErrBusy, err)
	}
	return err
}

// mark notes in span that the operation failed. Sold out is no failure.
func mark(span trace.Span, err error) {
	if _, refused := errors.AsType[*stock.ShortageError](err); err != nil && !refused {
		span.SetStatus(codes.Error, err.Error())
	}
}

type nobody struct{}

func (nobody) Placed(context.Context, error)  {}
func (nobody) Retried(context.Context, error) {}
