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
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/permits"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/waitlist"
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
	TTL       time.Duration        // how long an order waits for payment; default 15 minutes
	MaxLife   time.Duration        // how long it may wait with all extensions; default four times TTL
	QueueLife time.Duration        // how long a queued order is tried; default 30 seconds
	MaxOpen   int64                // how many pending orders a customer may have; default any number
	Permits   *permits.Limiter     // of orders that are being placed; default: no bound
	Waitlist  *waitlist.Waitlist   // default: nobody waits for units
	Tracer    trace.TracerProvider // default: no spans
	Observer  Observer             // default: nobody

	// Stopping ends when those who wait for units must go. Default: never.
	Stopping context.Context //nolint:containedctx // It is a signal.
}

// Service places, pays, cancels, extends and expires orders. It is safe for concurrent use.
type Service struct {
	store      Store
	strategies *stock.Strategies
	ttl        time.Duration
	maxLife    time.Duration
	queueLife  time.Duration
	maxOpen    int64
	permits    *permits.Limiter
	waitlist   *waitlist.Waitlist
	stopping   context.Context //nolint:containedctx // It is a signal.
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
		queueLife:  cmp.Or(c.QueueLife, 30*time.Second),
		maxOpen:    c.MaxOpen,
		permits:    c.Permits,
		waitlist:   c.Waitlist,
		stopping:   c.Stopping,
		tracer:     c.Tracer.Tracer("example.com/shop/internal/order"),
		observer:   c.Observer,
	}
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
			if err != nil && !guarded && ctx.Err() == nil && !errors.Is(err, stock.ErrGuarded) {
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

// Order returns the order with the given id if it is of owner, or of anybody when owner
// is empty; otherwise [ErrNotFound].
func (s *Service) Order(ctx context.Context, id, owner string) (Order, error) {
	o, err := s.store.Order(ctx, id, owner)
	return o, deadline(err)
}

// Orders returns a page of those orders that f chooses, latest first.
func (s *Service) Orders(ctx context.Context, f Filter) (Page, error) {
	p, err := s.store.Orders(ctx, f)
	return p, deadline(err)
}

// Events returns the movements of an order in their order. It asks for the owner as Order does.
func (s *Service) Events(ctx context.Context, id, owner string) ([]Event, error) {
	e, err := s.store.Events(ctx, id, owner)
	return e, deadline(err)
}

// Answer returns the answer to an earlier request with the key of r, if one is stored, or
// [idempotency.ErrReused].
func (s *Service) Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	a, found, err = s.store.Answer(ctx, r)
	return a, found, deadline(err)
}

// Pay confirms a pending order. Paying a confirmed order again with the same
// payment returns it unchanged. Errors: [ErrInvalid], [ErrNotFound],
// [*StateError] with the order as it stands, those of [idempotency], [stock.ErrBusy],
// [stock.ErrUnavailable].
func (s *Service) Pay(ctx context.Context, t Target, payment string) (Order, error) {
	if !ValidName(payment) {
		return Order{}, fmt.Errorf("%w: payment id %q", ErrInvalid, payment)
	}
	o, changed, err := s.store.Settle(ctx, t, Confirmed, payment)
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && (o.Status != Confirmed || o.PaymentID != payment) {
		return Order{}, s.refuse(ctx, t.Once, &StateError{Order: o})
	}
	if !changed {
		return o, s.store.Refuse(ctx, t.Once, o, nil)
	}
	return o, nil
}

// Cancel gives the units of a pending order back, and takes a queued one out of the queue.
// Cancelling a cancelled order returns it unchanged. Errors: [ErrNotFound], [*StateError]
// with the order as it stands, those of [idempotency], [stock.ErrBusy], [stock.ErrUnavailable].
func (s *Service) Cancel(ctx context.Context, t Target) (Order, error) {
	o, changed, err := s.store.Settle(ctx, t, Cancelled, "")
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && o.Status != Cancelled {
		return Order{}, s.refuse(ctx, t.Once, &StateError{Order: o})
	}
	if !changed {
		return o, s.store.Refuse(ctx, t.Once, o, nil)
	}
	for _, it := range o.Items {
		s.returned(it.SKU)
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
