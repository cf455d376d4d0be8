package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// selling is how a SKU is sold. The name of its strategy never changes, and the base hardly
// ever: whoever has an old one is refused, and told the new one.
type selling struct {
	strategy string
	base     uint64
}

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
		if !backoff.Sleep(ctx, rand.N(pause)) {
			return deadline(errors.Join(context.Cause(ctx), err))
		}
		pause = min(2*pause, 32*retryPause)
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
