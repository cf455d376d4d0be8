package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/stock"
)

const (
	// longTransaction is how long the others wait for a shared transaction.
	longTransaction = 250 * time.Millisecond

	// maxShared is about how many orders one of them commits. A leader brings its own.
	maxShared = 256

	// manyOrders is how many orders do not wait for others.
	manyOrders = 32

	// longestPause is how long fewer wait at most.
	longestPause = 10 * time.Millisecond
)

// ErrCommitAlone says, as [Batch.Err], that a shared transaction has left the batch out: somebody else has a row of it, or the database
// is slow. The batch is to be committed in a transaction of its own, which may wait.
var ErrCommitAlone = fmt.Errorf("order: a row of the batch is locked: %w", stock.ErrRowLocked)

// ErrRowSuspect is [ErrCommitAlone] for a batch whose row is, or may be, locked for long.
var ErrRowSuspect = fmt.Errorf("%w for long", ErrCommitAlone)

// begin begins a transaction if none is open and a unit is ready, and has the lanes that lack a lease ask for it.
func (q *commitQueue) begin() {
	if units := q.next(false); units != nil {
		q.work.Go(func() { q.run(units) })
	}
}

// beginHere is begin in the goroutine of the caller: another one would wake an idle processor.
func (q *commitQueue) beginHere() {
	units := q.next(false)
	if units == nil || !q.runOne(units) {
		return
	}
	if units = q.next(true); units != nil {
		q.work.Go(func() { q.run(units) })
	}
}

// run commits units, and then those that are ready until there are none. A few orders that wait after a shared transaction are joined by
// those that come in half the time that it took, or in longestPause. For its commit_delay PostgreSQL advises half the time of a
// flush.
func (q *commitQueue) run(units []*unit) {
	for units != nil {
		began, shared := time.Now(), len(units) > 1 || len(units[0].parts(false)) > 1
		if !q.runOne(units) {
			return
		}
		if shared && q.few() {
			time.Sleep(min(time.Since(began)/2, longestPause))
		}
		units = q.next(true)
	}
}

// runOne commits units. A transaction that takes long no longer counts as open. It may wait for a row or for a key that
// another instance stores, and others need not: then runOne returns false, and another run has taken its place.
func (q *commitQueue) runOne(units []*unit) bool {
	q.work.Add(1)
	late := time.AfterFunc(longTransaction, func() {
		defer q.work.Done()
		q.detach(units)
		q.run(q.next(true))
	})
	var parts []*part
	for _, u := range units {
		parts = append(parts, u.parts(false)...)
	}
	q.share(parts, false)
	over := late.Stop()
	if over {
		q.work.Done()
	}
	for _, u := range units {
		q.end(u)
	}
	return over
}

// detach has the orders that wait for those of units served without them, if they need no lease.
func (q *commitQueue) detach(units []*unit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range units {
		l := u.lane
		if u.served != nil || u.round != nil || l.key.alone != nil || q.lanes[l.key] != l {
			continue
		}
		others := &lane{key: l.key, offers: l.offers, entries: l.entries}
		l.entries = nil
		for _, e := range others.entries {
			e.lane = others
		}
		q.lanes[l.key] = others
		q.start(others)
	}
}

// few reports whether some orders wait for a transaction, and fewer than manyOrders.
func (q *commitQueue) few() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	orders := 0
	for _, u := range q.ready {
		orders += max(len(u.entries), len(u.lane.entries))
	}
	for _, l := range q.leasing {
		orders += len(l.entries)
	}
	return 0 < orders && orders < manyOrders
}

// next returns the units of the next shared transaction, if none is open: of those that are ready, each in its turn, with as many
// orders as fit. It returns nil if none is ready. Units that share no transaction begin their own. The lanes that lack a lease ask for it
// meanwhile, one round at a time: the others would be smaller, and their leases would wait for the transaction of the first. over says
// that the open transaction is over.
func (q *commitQueue) next(over bool) (units []*unit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open = q.open && !over; q.open {
		return nil
	}
	if lanes := q.leasing; lanes != nil && !q.asking {
		q.leasing, q.asking = nil, true
		q.work.Go(func() { q.ask(lanes) })
	}
	for orders := 0; len(q.ready) > 0 && orders < maxShared; {
		u := q.ready[0]
		if u.entries == nil {
			fair := max(1, (maxShared-orders)/len(q.ready)) // the others have their turn as well
			u.entries = u.lane.take(fair)
		}
		q.ready = q.ready[1:]
		if orders += len(u.entries); u.sharable() {
			units = append(units, u)
			continue
		}
		q.work.Go(func() { q.alone(u) })
	}
	q.open = units != nil
	return units
}

// alone commits u in a transaction of its own, which may wait for rows.
func (q *commitQueue) alone(u *unit) {
	q.share(u.parts(true), true)
	q.end(u)
}

// end has the lane of u served again, after a transaction with u. If a row of u is locked, u is committed alone first. No other
// SKU's lease is kept meanwhile.
func (q *commitQueue) end(u *unit) {
	if apart := u.apart; apart != nil {
		u.apart = nil
		if u.err == nil && u.round == nil && !u.bounded() {
			u.entries = apart
			q.work.Go(func() { q.alone(u) })
			return
		}
		q.putBack(u.lane, apart, nil)
		u.err = cmp.Or(u.err, ErrCommitAlone)
	}
	switch {
	case u.served != nil:
		u.served <- u.err
	case u.round != nil:
		q.work.Go(func() { q.leaves(u) })
	default:
		q.restart(u.lane, u.err)
	}
}

// share commits parts in one transaction, and answers their orders. If that fails because of one order, it commits them in halves.
func (q *commitQueue) share(parts []*part, alone bool) {
	if parts = q.enlist(parts); len(parts) == 0 {
		return
	}
	err := q.try(parts, alone)
	one, wanted := parts[0], parts[0].ctx.Err() == nil
	for _, p := range parts {
		p.cancel(nil)
	}
	switch n := len(parts); {
	case err == nil, forAll(err), anotherTry(err):
	case n > 1:
		q.share(parts[:n/2], alone)
		q.share(parts[n/2:], alone)
		return
	case len(one.entries) > 1 && wanted:
		half := len(one.entries) / 2
		q.share([]*part{{unit: one.unit, entries: one.entries[:half]}}, alone)
		q.share([]*part{{unit: one.unit, entries: one.entries[half:]}}, alone)
		return
	}
	for _, p := range parts {
		q.outcome(p, cmp.Or(p.batch.Err, err)) // a part that was left out has nothing to do with the error of the others
	}
}

// enlist returns those of parts that have orders to commit, whose callers have not gone. It answers the others. The orders of a unit
// whose lock is lost, or of no more use, are put back.
func (q *commitQueue) enlist(parts []*part) []*part {
	return slices.DeleteFunc(parts, func(p *part) bool {
		u := p.unit
		if u.err == nil && u.ctx.Err() != nil {
			u.err = context.Cause(u.ctx)
		}
		if u.err != nil {
			q.putBack(u.lane, p.entries, nil)
			return true
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		p.entries = slices.DeleteFunc(slices.Clone(p.entries), func(e *entry) bool {
			if e.gone {
				e.answer <- e.verdict(e.over)
			}
			return e.gone
		})
		p.callers = len(p.entries)
		if p.callers == 0 {
			return true
		}
		p.ctx, p.cancel = context.WithCancelCause(u.ctx)
		for _, e := range p.entries {
			e.part = p
		}
		return false
	})
}

// observe notifies the observer of a transaction that begins with parts.
func (q *commitQueue) observe(ctx context.Context, parts []*part, orders int) {
	q.observer.Committing(ctx, orders)
	now := time.Now()
	for _, p := range parts {
		for _, e := range p.entries {
			if !e.arrived.IsZero() {
				q.observer.Waited(e.ctx, now.Sub(e.arrived), orders)
				e.arrived = time.Time{}
			}
		}
	}
}

// try commits parts. A panic is an error like another. The transaction ends when the callers of all orders have left. Its span is in the
// trace of one of its orders, which is recorded if any is, and has links to all that are recorded. It is a child of the span of the
// lease if that is in the same trace.
func (q *commitQueue) try(parts []*part, alone bool) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("order: commit: panic: %v\n%s", cause, debug.Stack())
		}
	}()
	batches, skus, orders, strategy := make([]*Batch, len(parts)), 0, 0, ""
	var links []trace.Link
	for i, p := range parts {
		p.batch = &Batch{Claims: p.unit.claims, Bounded: !alone}
		for _, e := range p.entries {
			p.batch.Requests = append(p.batch.Requests, e.Request)
			for _, o := range e.offers {
				strategy = common(strategy, o.Strategy.Name)
			}
			if s := trace.SpanContextFromContext(e.ctx); s.IsSampled() {
				links = append(links, trace.Link{SpanContext: s})
			}
		}
		batches[i] = p.batch
		skus, orders = skus+len(p.unit.claims), orders+len(p.entries)
	}
	of := trace.SpanContextFromContext(parts[0].entries[0].ctx)
	if len(links) > 0 {
		of = links[0].SpanContext
	}
	within := of
	for _, p := range parts {
		if lease := trace.SpanContextFromContext(p.ctx); lease.TraceID() == of.TraceID() {
			within = lease
		}
	}
	ctx, span := q.tracer.Start(trace.ContextWithSpanContext(context.WithoutCancel(parts[0].ctx), within), "stock.reserve", trace.WithLinks(links...),
		trace.WithAttributes(attribute.Int("stock.skus", skus), attribute.Int("stock.orders", orders), attribute.String("stock.strategy", strategy)))
	q.observe(ctx, parts, orders)
	defer func() {
		for _, p := range parts {
			if p.batch.Err != nil {
				span.AddEvent("left out", trace.WithAttributes(semconv.ExceptionMessage(p.batch.Err.Error())))
			}
		}
		mark(span, err)
		span.End()
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	for _, p := range parts {
		defer context.AfterFunc(p.ctx, func() {
			if left.Add(1) == int64(len(parts)) {
				cancel(context.Cause(p.ctx))
			}
		})()
	}
	err = q.store.Commit(ctx, batches...)
	if only := batches[0].Err; len(batches) == 1 && err == nil && !errors.Is(only, ErrCommitAlone) { // it has nothing to be left out for
		err, batches[0].Err = batches[0].Err, nil
	}
	return err
}
