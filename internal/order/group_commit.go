package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/stock"
)

const (
	// longTransaction is how long the others wait for a shared transaction.
	longTransaction = 250 * time.Millisecond

	// maxShared is how many orders one of them commits.
	maxShared = 256

	// manyOrders is how many orders do not wait for others.
	manyOrders = 32

	// longestPause is how long fewer wait at most.
	longestPause = 10 * time.Millisecond
)

// ErrCommitAlone says, as [Batch.Err], that a row of the batch is locked by somebody else. The batch is to be committed in a
// transaction of its own, which may wait.
var ErrCommitAlone = fmt.Errorf("order: a row of the batch is locked: %w", stock.ErrRowLocked)

// groupCommit commits batches that wait at the same time in one transaction, whatever they sell. A batch that
// comes when no transaction is open begins at once. The others wait for the open one, for longTransaction at most, and
// share the next. Two at a time would be half as large. A batch that fails costs the others a repetition at most.
//
// It is the group commit of databases (D. J. DeWitt et al., Implementation Techniques for Main Memory Database Systems,
// SIGMOD 1984), for rows instead of log records.
type groupCommit struct {
	store Store

	mu      sync.Mutex
	waiting []*joining // guarded by mu
	open    bool       // a shared transaction that does not take long; guarded by mu
}

func newGroupCommit(store Store) *groupCommit { return &groupCommit{store: store} }

// joining is a batch that waits for its transaction.
type joining struct {
	*Batch

	ctx  context.Context //nolint:containedctx // That of its lock: its trace.
	done chan error
}

// commit commits b. It blocks until a transaction with b is over, or ctx ends while b waits for one. Errors are those of
// Store.Commit, and of the batch.
func (g *groupCommit) commit(ctx context.Context, b *Batch) error {
	if !b.sharable() {
		return g.alone(ctx, b)
	}
	j := &joining{Batch: b, ctx: ctx, done: make(chan error, 1)}
	g.mu.Lock()
	first := !g.open
	if g.open = true; !first {
		g.waiting = append(g.waiting, j)
	}
	g.mu.Unlock()
	if first { // in its own goroutine: another one would wake an idle processor
		if group := []*joining{j}; g.runOne(group) {
			if group = g.take(); group != nil {
				go g.run(group)
			}
		}
	}
	var err error
	select {
	case err = <-j.done:
	case <-ctx.Done():
		if g.leave(j) {
			return context.Cause(ctx)
		}
		err = <-j.done // the database bounds how long its transaction takes
	}
	if errors.Is(err, ErrCommitAlone) {
		return g.alone(ctx, b)
	}
	return err
}

// sharable reports whether others may be in the transaction of b: it locks all of its rows before it decides, and waits
// for nothing else.
func (b *Batch) sharable() bool {
	return !slices.ContainsFunc(b.Claims, func(c stock.Claim) bool { return c.Update.ReadsBefore() }) &&
		!slices.ContainsFunc(b.Requests, func(r *Request) bool { return r.Queued || r.Uncertain })
}

// alone commits b in a transaction of its own.
func (g *groupCommit) alone(ctx context.Context, b *Batch) error {
	b.Err = nil
	if err := g.store.Commit(ctx, b); err != nil {
		return err
	}
	return b.Err
}

// leave takes j out of those who wait, unless it is in a transaction.
func (g *groupCommit) leave(j *joining) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, j)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// run commits group, and then those who wait until there are none. A few who wait after a shared transaction are joined by
// those who come in half the time that it took, or in longestPause. For its commit_delay PostgreSQL advises half the time of a
// flush.
func (g *groupCommit) run(group []*joining) {
	for group != nil {
		began := time.Now()
		if !g.runOne(group) {
			return
		}
		if len(group) > 1 && g.few() {
			time.Sleep(min(time.Since(began)/2, longestPause))
		}
		group = g.take()
	}
}

// runOne commits group. A transaction that takes long no longer counts as open. It may wait for a row or for a key that
// another instance stores, and others need not: then runOne returns false, and another run has taken its place.
func (g *groupCommit) runOne(group []*joining) bool {
	late := time.AfterFunc(longTransaction, func() { g.run(g.take()) })
	g.share(group)
	return late.Stop()
}

// few reports whether some orders wait, and fewer than manyOrders.
func (g *groupCommit) few() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	orders := 0
	for _, j := range g.waiting {
		orders += len(j.Requests)
	}
	return 0 < orders && orders < manyOrders
}

// take takes those who came first, as many as a transaction may have. It returns nil if none waits: then no transaction is open.
func (g *groupCommit) take() []*joining {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, orders := 0, 0
	for ; n < len(g.waiting); n++ {
		if orders += len(g.waiting[n].Requests); n > 0 && orders > maxShared {
			break
		}
	}
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.open = n > 0
	if n == 0 {
		return nil
	}
	return group
}

// share commits group in one transaction, in halves if that fails for the sake of one of them.
func (g *groupCommit) share(group []*joining) {
	err := g.try(group)
	if n := len(group); err != nil && n > 1 && !forAll(err) && !errors.Is(err, ErrOutcomeUnknown) {
		g.share(group[:n/2])
		g.share(group[n/2:])
		return
	}
	for _, j := range group {
		j.done <- cmp.Or(j.Err, err) // one that was left out has nothing to do with the error of the others
	}
}

// try commits group. A panic is an error like another. The transaction ends when all callers have left;
// it belongs to the trace of one of them.
func (g *groupCommit) try(group []*joining) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("order: commit: panic: %v\n%s", cause, debug.Stack())
		}
	}()
	batches := make([]*Batch, len(group))
	for i, j := range group {
		j.Err = nil
		batches[i] = j.Batch
	}
	if len(group) == 1 {
		return g.store.Commit(group[0].ctx, batches...)
	}
	traced := max(0, slices.IndexFunc(group, func(j *joining) bool { return trace.SpanContextFromContext(j.ctx).IsSampled() }))
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(group[traced].ctx))
	defer cancel(nil)
	var left atomic.Int64
	for _, j := range group {
		defer context.AfterFunc(j.ctx, func() {
			if left.Add(1) == int64(len(group)) {
				cancel(context.Cause(j.ctx))
			}
		})()
	}
	return g.store.Commit(ctx, batches...)
}
