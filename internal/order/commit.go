package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// pending is an order on its way to the transaction.
type pending struct {
	req    *Request
	ctx    context.Context //nolint:containedctx // That of Place: its trace and its deadline.
	offers []stock.Offer
	lockBy time.Time // until when it waits for locks; zero: as long as ctx allows
	lag    tokenLag
}

// noWaitGrace is how long an order with wait=0 waits for locks, because its own instance may hold them and be about to
// release them.
const noWaitGrace = 50 * time.Millisecond

// waiting returns the context in which p waits for locks.
func (p *pending) waiting() (context.Context, context.CancelFunc) {
	if p.lockBy.IsZero() {
		return p.ctx, func() {}
	}
	wait := max(time.Until(p.lockBy), noWaitGrace)
	return context.WithTimeoutCause(p.ctx, wait, stock.ErrLockHeld)
}

// lockKey names the locks under which a batch of orders is committed.
type lockKey struct {
	sku   string   // the SKU whose lock the orders share
	alone *pending // otherwise the order that takes its locks for itself
}

// heldLocks are the locks of a batch, and what they permit the transaction to do.
type heldLocks struct {
	offers []stock.Offer
	claims []stock.Claim
}

// batches is where orders wait for their locks, and are committed.
type batches = cohort.Group[lockKey, heldLocks, *pending]

// newBatches returns the batches of s. A batch repeats an attempt under new locks after a lost lock, a refused fencing
// token, a version conflict or an unknown outcome.
func (s *Service) newBatches() *batches {
	unknown := func(err error) bool { return errors.Is(err, ErrOutcomeUnknown) }
	return cohort.New(cohort.Config[lockKey, heldLocks, *pending]{
		Hold:    s.lock,
		Commit:  s.commitBatch,
		Retry:   func(err error) bool { return unknown(err) || retryable(err) != nil && !forAll(err) },
		Common:  forAll,
		Unknown: unknown,
		Refuse:  s.soldOut,
	})
}

// forAll reports whether err is everybody's: it would be the same with fewer orders.
func forAll(err error) bool {
	return errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrFencesLost) || errors.Is(err, stock.ErrRowLocked)
}

// commit has the order of p committed under its locks, in a batch if its strategy shares them. It returns nil if
// p.req has its answer.
func (s *Service) commit(p *pending) error {
	waiting, cancel := p.waiting()
	defer cancel()
	req := *p.req // the batch may go on with the copy after the time of this order is over
	req.Err, req.Answered = nil, false
	mine := &pending{req: &req, ctx: p.ctx, offers: p.offers}
	key := lockKey{alone: mine}
	if l := p.offers[0]; len(p.offers) == 1 && l.Strategy.Cohort {
		key = lockKey{sku: l.SKU}
	}
	err := s.batches.Do(p.ctx, waiting, key, mine)
	if errors.Is(err, cohort.ErrLeft) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	*p.req = req
	switch {
	case req.Answered:
		return nil // whatever becomes of the others
	case errors.Is(err, cohort.ErrFull):
		err = fmt.Errorf("%w: %w", stock.ErrBusy, err)
	}
	return deadline(err)
}

// lock runs fn while the locks of key are held.
func (s *Service) lock(ctx context.Context, key lockKey, fn func(context.Context, heldLocks) error) error {
	var offers []stock.Offer
	if key.alone == nil {
		offers = []stock.Offer{s.offer(key.sku)}
	} else {
		for _, l := range key.alone.offers {
			offers = append(offers, s.offer(l.SKU)) // its token offset may have changed since the latest attempt
		}
	}
	for _, o := range offers {
		if o.Strategy.Leased() {
			s.publisher.Waits(o.SKU, o.Strategy.Name, s.waitingFor)
		}
	}
	held, asked := false, time.Now()
	err := stock.WithLocks(ctx, offers, func(ctx context.Context, claims []stock.Claim) error {
		held = true
		for i, c := range claims {
			if c.Fence.Token > 0 {
				expires := func() time.Time { return dlock.ValidUntil(ctx, stock.LockKey(c.SKU)) }
				ended := s.publisher.Held(c.SKU, offers[i].Strategy.Name, c.Fence, asked, expires)
				defer ended()
			}
		}
		return fn(ctx, heldLocks{offers, claims})
	})
	if held {
		return err
	}
	if reason := retryable(err); reason != nil {
		s.observer.Retried(ctx, reason)
	}
	return unlocked(ctx, err)
}

// waitingFor returns how many orders of this instance wait for the lock of sku.
func (s *Service) waitingFor(sku string) int {
	return s.batches.Waiting(func(k lockKey) bool {
		return k.sku == sku || k.alone != nil && slices.ContainsFunc(k.alone.offers, func(o stock.Offer) bool { return o.SKU == sku })
	})
}

// unlocked names an error of a lock that was not acquired. Its service is unavailable, unless somebody else holds the
// lock or the error is the end of ctx. That ctx is over by now proves nothing.
func unlocked(ctx context.Context, err error) error {
	ended := ctx.Err()
	if err == nil || ended != nil && errors.Is(err, ended) || errors.Is(err, context.Cause(ctx)) || retryable(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", stock.ErrLockAway, err)
}

// commitBatch commits the orders of batch under the locks held.
func (s *Service) commitBatch(ctx context.Context, key lockKey, held heldLocks, batch []*pending) error {
	requests := make([]*Request, len(batch))
	for i, p := range batch {
		requests[i] = p.req
	}
	err := s.reserve(onBehalf(ctx, batch), held, requests)
	if reason := retryable(err); reason != nil {
		s.observer.Retried(ctx, reason)
	}
	if e, ok := errors.AsType[*stock.FencedError](err); ok {
		return s.fenced(batch[0], e)
	}
	if key.alone == nil && slices.ContainsFunc(requests, isShort) {
		s.short.Store(key.sku, true)
	}
	return err
}

// fenced returns the error of a batch that a row refused with e. The batch is not retried if the tokens of the lock
// service cannot exceed that of the row by the deadline of its first order.
func (s *Service) fenced(first *pending, e *stock.FencedError) error {
	offer := s.offer(e.Refused.SKU)
	s.publisher.Fenced(offer.Strategy.Name, e)
	if e.Base > offer.Base {
		offer.Base = e.Base
		s.offers.Store(offer.SKU, offer)
	}
	if err := first.lag.refused(first.ctx, e); err != nil && !offer.Strategy.RaisesCounter {
		return err
	}
	return e
}

// reserve commits requests in a transaction, after it took their units where a counter has them.
func (s *Service) reserve(ctx context.Context, held heldLocks, requests []*Request) error {
	ctx, span := s.tracer.Start(ctx, "stock.reserve",
		trace.WithAttributes(attribute.Int("stock.skus", len(held.claims)), attribute.Int("stock.orders", len(requests))))
	defer span.End()
	var err error
	if slices.ContainsFunc(held.offers, func(l stock.Offer) bool { return l.Strategy.Counter != nil }) {
		err = s.takeAndCommit(ctx, held, requests)
	} else {
		err = s.group.commit(ctx, &Batch{Claims: held.claims, Requests: requests})
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

// onBehalf returns a context for work that several orders share. It belongs to the trace of one
// of them: one that is recorded, if there is any.
func onBehalf(ctx context.Context, batch []*pending) context.Context {
	sampled := func(p *pending) bool { return trace.SpanContextFromContext(p.ctx).IsSampled() }
	traced := batch[max(0, slices.IndexFunc(batch, sampled))]
	return trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(traced.ctx))
}
