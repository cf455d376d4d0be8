package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/waitlist"
)

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
	Publisher Publisher            // default: nobody

	// Stopping ends when those who wait for units must go. Default: never.
	Stopping context.Context //nolint:containedctx // It is a signal.
}

// Service places, pays, cancels, extends and expires orders. It is safe for concurrent use.
type Service struct {
	store     Store
	offers    *offers
	queue     *commitQueue
	ttl       atomic.Int64  // how long an order waits for payment, in nanoseconds
	maxLife   time.Duration // 0: four times ttl
	queueLife time.Duration
	maxOpen   int64
	permits   *permits.Limiter
	waitlist  *waitlist.Waitlist
	stopping  context.Context //nolint:containedctx // It is a signal.
	tracer    trace.Tracer
	observer  Observer
	publisher Publisher
	inFlight  inFlight
	services  inFlight // by lock service
	overload  overload
	wanted    sync.Map // SKU to *overload, of SKUs of which there were some orders at once
}

// NewService returns a service on store.
func NewService(store Store, strategies *stock.Strategies, c Config) *Service {
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	if c.Observer == nil {
		c.Observer = discard{}
	}
	if c.Publisher == nil {
		c.Publisher = discard{}
	}
	ttl := cmp.Or(c.TTL, 15*time.Minute)
	s := &Service{
		store:     store,
		offers:    &offers{store: store, strategies: strategies},
		maxLife:   c.MaxLife,
		queueLife: cmp.Or(c.QueueLife, 30*time.Second),
		maxOpen:   c.MaxOpen,
		permits:   c.Permits,
		waitlist:  c.Waitlist,
		stopping:  c.Stopping,
		tracer:    c.Tracer.Tracer("example.com/shop/internal/order"),
		observer:  c.Observer,
		publisher: c.Publisher,
	}
	s.SetTTL(ttl)
	s.queue = &commitQueue{
		store: store, offers: s.offers, tracer: s.tracer, observer: s.observer, publisher: s.publisher, lanes: make(map[laneKey]*lane),
	}
	return s
}

// Wait waits until the service has released all locks, or ctx ends. It may hold some when all orders
// have their answers.
func (s *Service) Wait(ctx context.Context) error { return s.queue.wait(ctx) }

// SetTTL changes how long orders wait for payment that are placed from now on, and without
// Config.MaxLife how long any may be extended to wait.
func (s *Service) SetTTL(ttl time.Duration) { s.ttl.Store(int64(ttl)) }

// TTL returns how long orders wait for payment that are placed now.
func (s *Service) TTL() time.Duration { return time.Duration(s.ttl.Load()) }

// longest returns how long an order may wait with all extensions.
func (s *Service) longest() time.Duration { return cmp.Or(s.maxLife, 4*s.TTL()) }

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

// Refuse stores a as the answer to r, which had no effect. It fails with [*idempotency.AnsweredError] or
// [idempotency.ErrReused] if the key was stored meanwhile, and with [stock.ErrBusy] or [stock.ErrUnavailable].
func (s *Service) Refuse(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error {
	return deadline(s.store.Refuse(ctx, r, a))
}

// deadline gives a deadline that has passed the name that callers know.
func deadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, stock.ErrUnavailable) {
		return fmt.Errorf("%w: %w", stock.ErrBusy, err)
	}
	return err
}

// mark notes in span that the operation failed, and the outcome as the type of the error. Sold out is no failure, nor is a repetition.
func mark(span trace.Span, err error) {
	_, refused := errors.AsType[*stock.ShortageError](err)
	_, replayed := errors.AsType[*idempotency.AnsweredError](err)
	if err != nil && !refused && !replayed {
		kind := semconv.ErrorType(err) // such as stock.FencedError, for which there is no term
		if is := Outcome(err); is != "error" {
			kind = semconv.ErrorTypeKey.String(is)
		}
		span.SetAttributes(kind)
		span.SetStatus(codes.Error, err.Error())
	}
}

// Outcome returns the term for the outcome of an order in metrics and spans. Errors wrap one another, and the most important
// error wins: an order that may exist is never counted as refused.
func Outcome(err error) string {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil:
		return "accepted"
	case is(ErrOutcomeUnknown):
		return "unknown"
	case errors.As(err, new(*stock.ShortageError)):
		return "out_of_stock"
	case errors.As(err, new(*LimitError)):
		return "over_limit"
	case is(ErrQueued):
		return "queued"
	case errors.As(err, new(*StateError)): // a queued order was rejected
		return "rejected"
	case errors.As(err, new(*idempotency.AnsweredError)):
		return "replayed"
	case is(ErrCrowded):
		return "sku_limit"
	case is(ErrServiceCrowded):
		return "lock_service_limit"
	case is(ErrOverloaded):
		return "adaptive_limit"
	case is(ErrConcurrencyLimit):
		return "no_permit"
	case is(ErrInvalid, ErrUnknownSKU, idempotency.ErrReused):
		return "invalid"
	case is(stock.ErrUnavailable, stock.ErrStrategyUnavailable, stock.ErrUnknownStrategy):
		return "unavailable"
	case is(stock.ErrBusy, ErrStopping, context.DeadlineExceeded):
		return "lock_timeout"
	case is(context.Canceled):
		return "cancelled"
	}
	return "error"
}
