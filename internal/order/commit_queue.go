package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/stock"
)

const (
	// maxQueue is how many orders wait in one lane.
	maxQueue = 10_000

	// leaveGrace is how long a caller whose time is over waits for its transaction. Most transactions end in that time, and the work stops
	// if no caller is left.
	leaveGrace = 250 * time.Millisecond

	// noWaitGrace is how long an order with wait=0 waits for locks, because its own instance may hold them and be about to
	// release them.
	noWaitGrace = 50 * time.Millisecond
)

var (
	// errFull means that maxQueue orders wait for the same lock. The order had no effect.
	errFull = fmt.Errorf("order: the queue is full: %w", stock.ErrBusy)

	// errLeft means that the caller's time was over while its order was in a transaction, which continues.
	errLeft = fmt.Errorf("%w: the transaction continues without its caller", ErrOutcomeUnknown)
)

// commitQueue is where all orders of an instance wait for their leases, and for the transaction that stores them. An order waits in
// a lane: that of its SKU if the orders of the SKU share a lease or need none, otherwise a lane of its own. A lane is waiting for its lease,
// ready, or in a transaction. Only ready lanes enter a transaction, so no order waits for the lease of another SKU.
//
//   - A shared transaction stores the orders of all ready lanes, whatever they buy. One statement locks all rows in SKU order. Then
//     the orders are decided one by one, and each table gets one statement. Lanes take turns: none fills a transaction
//     while others are ready. An instance has one such transaction open at a time. If none is open, a ready order begins one at once.
//   - Fewer than 32 orders that wait when it ends wait for others: for half the time that it took, and 10 ms at most.
//   - A transaction that takes longer than 250 ms no longer counts as open: the next one begins alongside it.
//   - Lanes that share a lease (lock cohorting) ask for it between two transactions. The free leases of a lock service are taken in one
//     round trip ([dlock.EachLocker]), each by itself, and kept for one transaction. A lane whose lease another process
//     has gets a leader: a goroutine that waits for the lease, keeps it for 4 transactions or 20 ms, and then lets others have their turn.
//   - These have a transaction each: queued orders, orders with an unknown outcome, and those of strategies that decide by earlier
//     reads (naive, local, redis-unfenced, optimistic).
//
// A stale fencing token or a shortage fails its own lane only. Other faults cost the other lanes little:
//
//   - A poison order, a panic, or a key that another instance is storing: the transaction is repeated in halves.
//   - A row that a foreign transaction keeps locked: 40 to 200 ms, once. The orders of that SKU commit alone until the row is free. A basket
//     gives its leases up first, waits for the row, and asks for them again.
//   - A lost lease, a stale token, a version conflict, a lost reply to COMMIT: the orders return to their lane and are tried again under new
//     locks. The store reads first which orders with an unknown outcome exist ([Request].Uncertain).
//
// If units are short, one read of the level refuses all orders of a cohort that were waiting before the read and want more than is
// available. Later orders need another read, because units can return without a lease.
//
// Mutual exclusion between processes is not guaranteed: a lease can expire while its holder is paused. The row compares the fencing token.
//
// Sources: D. J. DeWitt et al., Implementation Techniques for Main Memory Database Systems, SIGMOD 1984 (group commit). D. Dice,
// V. J. Marathe, N. Shavit: Lock Cohorting, PPoPP 2012. D. Hendler et al., Flat Combining and the Synchronization-Parallelism
// Tradeoff, SPAA 2010.
type commitQueue struct {
	store     Store
	offers    *offers
	tracer    trace.Tracer
	observer  Observer
	publisher Publisher
	short     sync.Map       // SKUs of which the latest batch wanted more than there was
	work      sync.WaitGroup // leaders, rounds and transactions

	mu      sync.Mutex
	lanes   map[laneKey]*lane // in which orders wait or are served
	seq     uint64            // of the latest arrival
	ready   []*unit           // that may enter a transaction, in turn
	leasing []*lane           // that ask for their leases with the next transaction
	asking  bool              // a round of leases is being asked for
	open    bool              // a shared transaction that does not take long
}

// entry is an order in the queue, from its arrival until its answer.
type entry struct {
	*Request // a copy of the caller's: the transaction may continue after the caller has left

	ctx     context.Context //nolint:containedctx // That of Place: its trace and its deadline.
	arrived time.Time       // zero after its first transaction has begun
	offers  []stock.Offer
	lockBy  time.Time  // until when it waits for locks; zero: as long as ctx allows
	lag     tokenLag   // of its SKU's lock service
	answer  chan error // has room for one
	flights []*flight  // of the bounds that count it
	flight  *flight    // the one of the instance, or nil

	// Guarded by commitQueue.mu.
	seq  uint64
	lane *lane // in which it waits, or waited
	out  bool  // of its lane: it is answered, or in a unit
	part *part // in which it is being committed
	last error // of the latest attempt, after which it was put back
	over error // why it will not be put back again
	gone bool  // its caller's context has ended
}

// verdict is the answer to a caller that is not served because of err: what the latest attempt left
// open is still open.
func (e *entry) verdict(err error) error {
	if e.last == nil {
		return err
	}
	return errors.Join(err, e.last)
}

// do commits the order of e under its locks. It returns nil if e has its answer.
//
// It blocks in a lane until the order is taken into a transaction, or its wait ends. Then it blocks until the transaction has an outcome.
// e.lockBy limits the wait in the lane, unless an attempt had an unknown outcome. e.ctx limits the whole call. If it ends during a
// transaction, do waits for another leaveGrace. The transaction is cancelled when the callers of all its orders have gone.
//
// Errors: [stock.ErrBusy] for a full lane; errLeft with the cause of the end of e.ctx; the cause of the end of the wait, joined with the
// latest error if the order was to be tried again; those of locks and of [Store.Commit].
func (q *commitQueue) do(e *entry) error {
	ctx, waiting := e.ctx, e.ctx
	if !e.lockBy.IsZero() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, max(time.Until(e.lockBy), noWaitGrace), stock.ErrLockHeld)
		defer cancel()
	}
	if waiting.Err() != nil {
		return context.Cause(waiting)
	}
	e.arrived = time.Now()
	if err := q.join(e); err != nil {
		return err
	}
	select {
	case err := <-e.answer:
		return err
	case <-waiting.Done(): // with ctx, at the latest
	}
	if err := q.leave(e, cmp.Or(context.Cause(ctx), context.Cause(waiting))); err != nil {
		return err
	}
	select {
	case err := <-e.answer:
		return err
	case <-ctx.Done():
		if err := q.leave(e, context.Cause(ctx)); err != nil {
			return err
		}
	}
	late := time.NewTimer(leaveGrace)
	defer late.Stop()
	select {
	case err := <-e.answer:
		return err
	case <-late.C:
		return fmt.Errorf("%w: %w", errLeft, context.Cause(ctx))
	}
}

// wait waits until all leaders, rounds and transactions are over, and their leases released, or ctx ends. Some are held when all orders
// have their answers.
func (q *commitQueue) wait(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		q.work.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join puts e into its lane, and starts the lane if it is new.
func (q *commitQueue) join(e *entry) error {
	q.mu.Lock()
	key := laneOf(e)
	l, ok := q.lanes[key]
	switch {
	case !ok:
		l = &lane{key: key, offers: e.offers}
		q.lanes[key] = l
	case len(l.entries) >= maxQueue:
		q.mu.Unlock()
		return errFull
	}
	q.seq++
	e.seq, e.lane = q.seq, l
	l.entries = append(l.entries, e)
	e.flight.block(l.cancel != nil)
	if !ok {
		q.start(l)
	}
	q.mu.Unlock()
	if !ok { // the others are served already
		q.begin()
	}
	return nil
}

// leave removes e from its lane, and returns the error for its caller; nil if e has left the lane already. It is also nil if
// only the maximum wait of e is over and an attempt has an unknown outcome: then its answer will follow.
func (q *commitQueue) leave(e *entry, why error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := e.lane
	if !e.out && e.ctx.Err() == nil && errors.Is(e.last, ErrOutcomeUnknown) {
		return nil // as putBack has it: the answer is to be the outcome of that attempt
	}
	e.over = cmp.Or(e.over, why)
	if e.out {
		if !e.gone && e.ctx.Err() != nil {
			e.gone = true
			if e.part != nil {
				e.part.drop(why)
			}
		}
		return nil
	}
	if i := slices.Index(l.entries, e); i >= 0 {
		l.entries = slices.Delete(l.entries, i, i+1)
	}
	if len(l.entries) == 0 && l.cancel != nil {
		l.cancel(why)
	}
	return e.verdict(e.over)
}

// putBack puts entries that were not served back into l, but answers those whose callers wait no longer. A caller
// whose maximum wait is over, and whose attempt has an unknown outcome, continues to wait.
func (q *commitQueue) putBack(l *lane, entries []*entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		e.last = cmp.Or(err, e.last)
		if !e.gone && errors.Is(e.last, ErrOutcomeUnknown) {
			e.over = nil
		}
		switch {
		case e.Answered:
			e.answer <- nil
			continue
		case e.over != nil:
			e.answer <- e.verdict(e.over)
			continue
		}
		e.part, e.out = nil, false
		l.entries = append(l.entries, e)
	}
	slices.SortFunc(l.entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
}

// settle answers orders of l with err, and those that have an answer of their own with nil.
func (q *commitQueue) settle(l *lane, entries []*entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		if _, short := errors.AsType[*stock.ShortageError](e.Err); short && l.offers[0].Strategy.Cohort && l.key.alone == nil {
			q.short.Store(l.key.sku, true)
		}
		switch {
		case e.Answered:
			e.answer <- nil
		case err != nil && e.gone:
			e.answer <- errors.Join(e.over, err)
		default:
			e.answer <- err
		}
	}
}

// waitingFor returns how many orders of this instance wait for the lock of sku.
func (q *commitQueue) waitingFor(sku string) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if slices.ContainsFunc(l.offers, func(o stock.Offer) bool { return o.SKU == sku }) {
			n += len(l.entries)
		}
	}
	return n
}
