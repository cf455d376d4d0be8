package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// placing is an order that is committed together with others of its SKU.
type placing struct {
	req *Request
	ctx context.Context //nolint:containedctx // That of Place: its trace and its deadline.
}

// lineKey is the key of the line in the context of a cohort that has its guard.
type lineKey struct{}

// newCohort returns the cohort of this instance for SKUs that are sold by st.
func (s *Service) newCohort(st stock.Strategy) *cohort.Group[*placing] {
	hold := func(ctx context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
		how, _ := s.selling(sku) // known since the first order, and read before the lease is asked for
		line, held := stock.Line{SKU: sku, Strategy: st, Base: how.base}, false
		err := st.Guard(stock.WithoutPatience(ctx), sku, func(ctx context.Context, f dlock.Fence) error {
			held = true
			s.held(line, line.Claim(f).Fence)
			return fn(context.WithValue(ctx, lineKey{}, line), f)
		})
		if held {
			return err
		}
		if reason := retryable(err); reason != nil {
			s.observer.Retried(ctx, reason)
		}
		return unguarded(ctx, err)
	}
	forAll := func(err error) bool {
		return errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrFencesLost) || errors.Is(err, stock.ErrRowLocked)
	}
	return cohort.New(cohort.Config[*placing]{
		Hold:   hold,
		Commit: s.commitBatch,
		Retry: func(err error) bool {
			return errors.Is(err, ErrOutcomeUnknown) || retryable(err) != nil && !forAll(err)
		},
		Common:  forAll,
		Unknown: func(err error) bool { return errors.Is(err, ErrOutcomeUnknown) },
		Refuse:  s.soldOut,
	})
}

// moment is how long an order waits for a cohort that is to wait for nothing: its own instance may
// have the guard, and be about to give it back.
const moment = 50 * time.Millisecond

// together has req committed in a batch. joined is false, and nothing has happened, when the
// SKU is not sold like that, or not alone.
func (s *Service) together(ctx context.Context, lines []stock.Line, req *Request) (joined bool, err error) {
	group := s.cohorts[lines[0].Strategy.Name]
	if group == nil || len(lines) > 1 {
		return false, nil
	}
	waiting, cancel := stock.Waiting(ctx)
	defer cancel()
	if waiting.Err() != nil && ctx.Err() == nil {
		waiting, cancel = context.WithTimeoutCause(ctx, moment, stock.ErrGuarded)
		defer cancel()
	}
	mine := *req // the batch may go on with it when this order's time is over
	err = group.Do(ctx, waiting, lines[0].SKU, &placing{&mine, ctx})
	if errors.Is(err, cohort.ErrLeft) {
		return true, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	*req = mine
	switch {
	case req.Answered:
		return true, nil // whatever becomes of the others
	case errors.Is(err, cohort.ErrFull):
		err = fmt.Errorf("%w: %w", stock.ErrBusy, err)
	}
	return true, deadline(err)
}

// commitBatch commits orders of one SKU under a lease with the fence f.
func (s *Service) commitBatch(ctx context.Context, sku string, f dlock.Fence, batch []*placing) error {
	line, _ := ctx.Value(lineKey{}).(stock.Line)
	requests := make([]*Request, len(batch))
	for i, p := range batch {
		requests[i] = p.req
	}
	err := s.reserve(onBehalf(ctx, batch), []stock.Line{line}, []stock.Claim{line.Claim(f)}, requests...)
	if reason := retryable(err); reason != nil {
		s.observer.Retried(ctx, reason)
	}
	if e, ok := errors.AsType[*stock.FencedError](err); ok {
		return s.fenced(batch[0].ctx, line, e)
	}
	s.chases.Delete(sku)
	for _, r := range requests {
		if _, short := shortage(r.Err); short {
			s.short.Store(sku, true)
			break
		}
	}
	return err
}

// fenced returns the error of a batch that was refused with e, on behalf of an order with ctx: it
// is not to be tried again when that is of no use.
func (s *Service) fenced(ctx context.Context, line stock.Line, e *stock.FencedError) error {
	refused := s.rebase([]stock.Line{line}, e)
	v, _ := s.chases.LoadOrStore(line.SKU, new(chase))
	if fences, ok := v.(*chase); ok { // which only the leader of this SKU looks at
		if err := fences.refused(ctx, e); err != nil && !refused.Strategy.Reseeds {
			return err
		}
	}
	return e
}

// onBehalf returns a context for work that several orders share. It belongs to the trace of one
// of them: one that is recorded, if there is any.
func onBehalf(ctx context.Context, batch []*placing) context.Context {
	span := trace.SpanContextFromContext(batch[0].ctx)
	for _, p := range batch[1:] {
		if span.IsSampled() {
			break
		}
		if other := trace.SpanContextFromContext(p.ctx); other.IsSampled() {
			span = other
		}
	}
	return trace.ContextWithSpanContext(ctx, span)
}

// soldOut returns what tells the orders of sku that want more than there is. It looks only when
// units were short lately, and what it tells is what it has seen then, in the database.
func (s *Service) soldOut(ctx context.Context, sku string) func(*placing) error {
	if _, short := s.short.Load(sku); !short {
		return nil
	}
	level, err := s.store.Level(ctx, sku)
	if err != nil {
		return nil
	}
	left := max(0, level.Available())
	if left > 0 {
		s.short.Delete(sku)
	}
	return func(p *placing) error {
		wanted := p.req.Order.Items[0].Quantity
		if wanted <= left {
			return nil
		}
		return &stock.ShortageError{Shortages: []stock.Shortage{{SKU: sku, Requested: wanted, Available: left}}}
	}
}
