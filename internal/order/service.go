package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/cohort"
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

// Publisher is told what has changed once it has. Its methods must not block.
type Publisher interface {
	// Changed is called with an order as it is after a change that was committed. A change
	// whose outcome is unknown is not told.
	Changed(o Order)

	// Held is called when the guard of a SKU is held by a lease.
	Held(sku, strategy string, f dlock.Fence)
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
	Publisher Publisher            // default: nobody

	// Stopping ends when those who wait for units must go. Default: never.
	Stopping context.Context //nolint:containedctx // It is a signal.
}

// Service places, pays, cancels, extends and expires orders. It is safe for concurrent use.
type Service struct {
	store      Store
	strategies *stock.Strategies
	ttl        atomic.Int64  // how long an order waits for payment, in nanoseconds
	maxLife    time.Duration // 0: four times ttl
	queueLife  time.Duration
	maxOpen    int64
	permits    *permits.Limiter
	waitlist   *waitlist.Waitlist
	stopping   context.Context //nolint:containedctx // It is a signal.
	tracer     trace.Tracer
	observer   Observer
	publisher  Publisher
	crowds     crowds
	services   crowds // by lock service
	overload   overload
	wanted     sync.Map                           // SKU to *overload, of SKUs of which there were some orders at once
	known      sync.Map                           // SKU to selling
	cohorts    map[string]*cohort.Group[*placing] // by the names of the strategies that have one
	short      sync.Map                           // SKUs of which the latest batch wanted more than there was
	chases     sync.Map                           // SKU to *chase, of cohorts that were refused latest
}

// selling is how a SKU is sold. The name of its strategy never changes, and the base hardly
// ever: whoever has an old one is refused, and told the new one.
type selling struct {
	strategy string
	base     uint64
}

// NewService returns a service on store.
func NewService(store Store, strategies *stock.Strategies, c Config) *Service {
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Publisher == nil {
		c.Publisher = nobody{}
	}
	ttl := cmp.Or(c.TTL, 15*time.Minute)
	s := &Service{
		store:      store,
		strategies: strategies,
		maxLife:    c.MaxLife,
		queueLife:  cmp.Or(c.QueueLife, 30*time.Second),
		maxOpen:    c.MaxOpen,
		permits:    c.Permits,
		waitlist:   c.Waitlist,
		stopping:   c.Stopping,
		tracer:     c.Tracer.Tracer("example.com/shop/internal/order"),
		observer:   c.Observer,
		publisher:  c.Publisher,
		cohorts:    make(map[string]*cohort.Group[*placing]),
	}
	s.SetTTL(ttl)
	for _, name := range strategies.Names() {
		if st, err := strategies.Lookup(name); err == nil && st.Cohort {
			s.cohorts[name] = s.newCohort(st)
		}
	}
	return s
}

// Wait waits until what the service does on behalf of several orders is over, or ctx ends: it
// may have leases to give back when all orders have their answers.
func (s *Service) Wait(ctx context.Context) error {
	var errs []error
	for _, c := range s.cohorts {
		errs = append(errs, c.Wait(ctx))
	}
	return errors.Join(errs...)
}

// SetTTL changes how long orders wait for payment that are placed from now on, and without
// Config.MaxLife how long any may be extended to wait.
func (s *Service) SetTTL(ttl time.Duration) { s.ttl.Store(int64(ttl)) }

// longest returns how long an order may wait with all extensions.
func (s *Service) longest() time.Duration { return cmp.Or(s.maxLife, 4*s.life()) }

// life returns how long an order waits for payment that is placed now.
func (s *Service) life() time.Duration { return time.Duration(s.ttl.Load()) }

// lines looks up by which strategy each SKU is sold.
func (s *Service) lines(ctx context.Context, items []Item) ([]stock.Line, error) {
	lines := make([]stock.Line, len(items))
	var unknown []string
	for i, it := range items {
		how, ok := s.selling(it.SKU)
		if !ok {
			level, err := s.store.Level(ctx, it.SKU)
			if errors.Is(err, stock.ErrNotFound) {
				unknown = append(unknown, it.SKU)
				continue
			}
			if err != nil {
				return nil, deadline(err)
			}
			how = selling{level.Strategy, level.Base}
			s.known.Store(it.SKU, how)
		}
		st, err := s.strategies.Lookup(how.strategy)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", it.SKU, err)
		}
		if err := st.Away(); err != nil { // before any guard is taken
			return nil, fmt.Errorf("%q: %w: %w", it.SKU, stock.ErrLockAway, err)
		}
		lines[i] = stock.Line{SKU: it.SKU, Strategy: st, Base: how.base}
	}
	if unknown != nil {
		return nil, &UnknownSKUError{unknown}
	}
	return lines, nil
}

func (s *Service) selling(sku string) (how selling, ok bool) {
	v, ok := s.known.Load(sku)
	if ok {
		how, ok = v.(selling)
	}
	return how, ok
}

// rebase returns the line that was refused with e, and has it count its fences from where the row
// counts them now.
func (s *Service) rebase(lines []stock.Line, e *stock.FencedError) stock.Line {
	for i, l := range lines {
		if l.SKU != e.Refused.SKU {
			continue
		}
		if e.Base > l.Base {
			lines[i].Base = e.Base
			s.known.Store(l.SKU, selling{l.Strategy.Name, e.Base})
		}
		return lines[i]
	}
	return stock.Line{}
}

// retryPause is the longest first pause before an attempt is repeated; the
// pause doubles up to 32 times that.
const retryPause = time.Millisecond

// commit places req under the guards of lines, and does it again under new
// guards when they were lost or somebody else was faster, unless that is of no use.
func (s *Service) commit(ctx context.Context, lines []stock.Line, req *Request) error {
	req.Err, req.Answered = nil, false // of an earlier try
	if joined, err := s.together(ctx, lines, req); joined {
		return err
	}
	pause := retryPause
	var fences chase
	for {
		held := false
		err := stock.Hold(ctx, lines, func(ctx context.Context, claims []stock.Claim) error {
			held = true
			for i, c := range claims {
				s.held(lines[i], c.Fence)
			}
			return s.reserve(ctx, lines, claims, req)
		})
		if errors.Is(err, ErrOutcomeUnknown) {
			return err // another attempt could end in an answer that is wrong about this one
		}
		reason := retryable(err)
		if reason == nil {
			if !held {
				err = unguarded(ctx, err)
			}
			return deadline(err)
		}
		s.observer.Retried(ctx, reason)
		if e, ok := errors.AsType[*stock.FencedError](err); ok {
			refused := s.rebase(lines, e)
			if err := fences.refused(ctx, e); err != nil && !refused.Strategy.Reseeds {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return deadline(errors.Join(context.Cause(ctx), err))
		case <-time.After(rand.N(pause)):
			pause = min(2*pause, 32*retryPause)
		}
	}
}

// unguarded names an error of a guard that was not had. Its store is away, unless somebody else has
// the guard or the error says that the time of ctx was over: that it is over by now says nothing.
func unguarded(ctx context.Context, err error) error {
	ended := ctx.Err()
	if err == nil || ended != nil && errors.Is(err, ended) || errors.Is(err, stock.ErrGuarded) || retryable(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", stock.ErrLockAway, err)
}

// held tells which lease the guard of l is, if it is one.
func (s *Service) held(l stock.Line, f dlock.Fence) {
	if f.Token > 0 {
		s.publisher.Held(l.SKU, l.Strategy.Name, f)
	}
}

// reserve commits requests with the claims that the guards of lines gave.
func (s *Service) reserve(ctx context.Context, lines []stock.Line, claims []stock.Claim, requests ...*Request) error {
	ctx, span := s.tracer.Start(ctx, "stock.reserve",
		trace.WithAttributes(attribute.Int("stock.skus", len(claims)), attribute.Int("stock.orders", len(requests))))
	defer span.End()
	var err error
	if slices.ContainsFunc(lines, func(l stock.Line) bool { return l.Strategy.Counter != nil }) {
		err = s.takeAndCommit(ctx, lines, claims, requests)
	} else {
		err = s.store.Commit(ctx, claims, requests)
	}
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
		return Order{}, &StateError{Order: o}
	}
	if !changed {
		return o, nil
	}
	s.publisher.Changed(o)
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
		return Order{}, &StateError{Order: o}
	}
	if !changed {
		return o, nil
	}
	for _, it := range o.Items {
		s.returned(it.SKU)
	}
	s.publisher.Changed(o)
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

// mark notes in span that the operation failed. Sold out is no failure, nor is a repetition.
func mark(span trace.Span, err error) {
	_, refused := errors.AsType[*stock.ShortageError](err)
	_, replayed := errors.AsType[*idempotency.AnsweredError](err)
	if err != nil && !refused && !replayed {
		span.SetStatus(codes.Error, err.Error())
	}
}

type nobody struct{}

func (nobody) Placed(context.Context, error)  {}
func (nobody) Retried(context.Context, error) {}

func (nobody) Changed(Order)                    {}
func (nobody) Held(string, string, dlock.Fence) {}
