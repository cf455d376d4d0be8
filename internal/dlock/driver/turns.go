package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// A grant is shared for at most this many turns, and no turn begins later than this after the first one. So a waiter
// of another process waits a little longer than for one lease, however many wait here.
const (
	TurnsPerGrant = 16
	maxSharing    = 20 * time.Millisecond
)

// Turns makes one acquisition for all callers of a process that wait for the same key, and lets them take turns under
// its grant. Each turn is a lease of its own, with a fencing token of its own. The grant has a block of
// [TurnsPerGrant] tokens, and turn n has the nth of them. Callers are served first come, first served.
//
// The next acquisition begins when the grant has no turn left for the waiting callers, while the last turn may
// continue. So the process has its place in the queue of the store as early as a single waiter, apart from the 20 ms
// of sharing.
//
// It does for a process what a cohort lock does for the threads of a NUMA node: Dice, Marathe and Shavit, Lock
// Cohorting, PPoPP 2012. The zero value is ready for use.
type Turns struct {
	mu     sync.Mutex
	queues map[string]*queue
}

// Take begins an acquisition of a key: it makes the first attempt. If others hold the key, it returns a
// [Wait]. The context of the Wait has the values of one of the waiters, and ends when none is left. A grant is shared
// if it was passed to [Share.Of].
type Take func(ctx context.Context, s *Share) (lease *dlock.Lease, wait Wait, err error)

// Wait waits until a key is granted, or ctx ends.
type Wait func(ctx context.Context) (*dlock.Lease, error)

// queue is the state of one key in this process. It exists while it has a waiter, an attempt or a share.
type queue struct {
	key     string
	waiters []*waiter // first come, first served
	attempt *attempt  // the acquisition in flight, or nil
	share   *Share    // the grant that has turns left, or nil

	first struct { // of the caller that created the queue: one allocation for everything
		attempt attempt
		share   Share
	}
}

// waiter is one call of Acquire that others precede.
type waiter struct {
	ctx  context.Context //nolint:containedctx // For the values of its lease.
	take Take
	done chan outcome
}

// outcome is the result of an acquisition.
type outcome struct {
	lease    *dlock.Lease
	err      error
	panicked any // of take, for the caller that is first
}

func (o outcome) get() (*dlock.Lease, error) {
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.lease, o.err
}

// attempt is an acquisition in flight. A caller that nobody precedes sends its first request itself. A goroutine does
// everything else, because that may outlive the caller.
type attempt struct {
	cancel context.CancelCauseFunc
	vain   bool          // all its callers have left
	ended  chan struct{} // closed when err is set
	err    error
}

var errNobodyWaits = errors.New("driver: nobody waits any more")

// Acquire returns a lease of key: a turn under a grant of this process, or the first of a grant that take has acquired.
// It waits until then, or until ctx ends. If take fails, all callers that wait at this moment get its error.
func (t *Turns) Acquire(ctx context.Context, key string, take Take) (*dlock.Lease, error) {
	t.mu.Lock()
	q := t.queues[key]
	if q == nil {
		q = &queue{key: key}
		q.attempt = &q.first.attempt
		if t.queues == nil {
			t.queues = map[string]*queue{}
		}
		t.queues[key] = q
		t.mu.Unlock()
		return t.first(ctx, q, take)
	}
	w := &waiter{ctx: ctx, take: take, done: make(chan outcome, 1)}
	q.waiters = append(q.waiters, w)
	t.serve(q)
	t.mu.Unlock()
	return t.await(q, w)
}

// first is Acquire for a caller that nobody precedes.
func (t *Turns) first(ctx context.Context, q *queue, take Take) (*dlock.Lease, error) {
	s := &q.first.share
	s.turns, s.queue = t, q
	o, wait := s.take(ctx, take)
	switch {
	case wait != nil:
		w := &waiter{ctx: ctx, done: make(chan outcome, 1)}
		t.mu.Lock()
		q.waiters = slices.Insert(q.waiters, 0, w)
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		q.attempt.cancel, q.attempt.ended = cancel, make(chan struct{})
		t.mu.Unlock()
		go t.acquire(ctx, s, wait, nil)
		return t.await(q, w)
	case o.err != nil && o.panicked == nil && ctx.Err() != nil: // about this caller alone
		t.mu.Lock()
		q.attempt = nil
		t.serve(q)
		t.mu.Unlock()
	default:
		t.settle(s, outcome{lease: o.lease, err: o.err}, 0)
	}
	return o.get()
}

// await waits until w is served, or its ctx ends.
func (t *Turns) await(q *queue, w *waiter) (*dlock.Lease, error) {
	select {
	case o := <-w.done:
		return o.get()
	case <-w.ctx.Done():
		return nil, t.leave(q, w)
	}
}

// leave removes w, whose ctx has ended. If it was the last waiter, leave waits until the acquisition in flight is
// rolled back.
func (t *Turns) leave(q *queue, w *waiter) error {
	t.mu.Lock()
	at := slices.Index(q.waiters, w)
	var vain *attempt
	if at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
		if a := q.attempt; a != nil && a.ended != nil && len(q.waiters) == 0 && !a.vain {
			vain, a.vain = a, true
		}
		t.tidy(q)
	}
	t.mu.Unlock()
	err := dlock.Ended(w.ctx)
	switch {
	case at < 0: // it was served
		lease, failed := (<-w.done).get()
		if failed != nil {
			return failed
		}
		_ = lease.Release(w.ctx) // to the next one, or the TTL frees it
	case vain != nil:
		vain.cancel(errNobodyWaits)
		if <-vain.ended; errors.Is(vain.err, dlock.ErrUncertain) {
			err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
		}
	}
	return err
}

// serve makes sure that the waiters will be served: by a turn, or by an acquisition. It requires mu.
func (t *Turns) serve(q *queue) {
	switch s := q.share; {
	case len(q.waiters) == 0 || q.attempt != nil:
	case s == nil:
		w := q.waiters[0]
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.ctx))
		q.attempt = &attempt{cancel: cancel, ended: make(chan struct{})}
		go t.acquire(ctx, &Share{turns: t, queue: q}, nil, w.take)
	case s.end == nil: // its holder may be slow
		s.end = time.AfterFunc(time.Until(s.until), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.shut(s)
		})
	}
	t.tidy(q)
}

func (t *Turns) tidy(q *queue) {
	if len(q.waiters) == 0 && q.attempt == nil && q.share == nil && t.queues[q.key] == q {
		delete(t.queues, q.key)
	}
}

// acquire acquires the key for the waiters: by wait, or from the beginning.
func (t *Turns) acquire(ctx context.Context, s *Share, wait Wait, take Take) {
	var o outcome
	if wait == nil {
		o, wait = s.take(ctx, take)
	}
	if wait != nil {
		o, _ = s.take(ctx, func(ctx context.Context, _ *Share) (*dlock.Lease, Wait, error) {
			lease, err := wait(ctx)
			return lease, nil, err
		})
	}
	a := s.queue.attempt
	if served := t.settle(s, o, 1); served == 0 && o.err == nil {
		_ = o.lease.Release(ctx)
	}
	a.err = o.err
	a.cancel(nil)
	close(a.ended)
}

// settle ends the attempt of s. n waiters get its lease, or all waiters its error.
func (t *Turns) settle(s *Share, o outcome, n int) (served int) {
	t.mu.Lock()
	q, a := s.queue, s.queue.attempt
	q.attempt = nil
	if o.err == nil && s.grant.Release != nil && !s.over {
		q.share, s.until = s, time.Now().Add(maxSharing)
	}
	switch {
	case a.vain && o.err != nil: // the present waiters came later
		n = 0
	case o.err != nil:
		n = len(q.waiters)
	}
	waiters := q.next(n)
	t.serve(q)
	t.mu.Unlock()
	for _, w := range waiters {
		w.done <- o
		o.panicked = nil
	}
	return len(waiters)
}

// take runs take. The first waiter panics if take does, and the other waiters get an error.
func (s *Share) take(ctx context.Context, take Take) (o outcome, wait Wait) {
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			o.err = fmt.Errorf("driver: the acquisition of another caller has panicked: %v", o.panicked)
		}
	}()
	o.lease, wait, o.err = take(ctx, s)
	return o, wait
}

// next removes up to n waiters. It requires mu.
func (q *queue) next(n int) (served []*waiter) {
	n = min(n, len(q.waiters))
	served = slices.Clone(q.waiters[:n])
	q.waiters = slices.Delete(q.waiters, 0, n)
	return served
}

// Waiting returns how many wait for key in this process without a place of their own in the store.
func (t *Turns) Waiting(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if q == nil {
		return 0
	}
	n := len(q.waiters)
	if q.attempt != nil && n > 0 {
		n--
	}
	return n
}

// Shut ends the sharing of the grants of key: their tokens are behind, or somebody else is to have the key.
func (t *Turns) Shut(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.queues[key]; q != nil && q.share != nil {
		t.shut(q.share)
	}
}

// shut ends the sharing of a grant. It requires mu.
func (t *Turns) shut(s *Share) {
	s.over = true
	if s.end != nil {
		s.end.Stop()
	}
	if s.queue.share == s {
		s.queue.share = nil
		t.serve(s.queue)
	}
}

// Share is a grant that the callers of one process share.
type Share struct {
	turns *Turns
	queue *queue
	grant dlock.Grant // of the store, with the first token of its block
	turn  uint64
	until time.Time   // no turn begins later
	end   *time.Timer // shuts it then, if anybody waits
	over  bool
}

// Of returns the grant of the first turn under g, which the store keeps until the last one has been released. A nil
// Share returns g.
func (s *Share) Of(g dlock.Grant) dlock.Grant {
	if s == nil {
		return g
	}
	s.grant = g
	return s.of(0)
}

// of returns the grant of a turn. Its release passes the grant of the store on, to the next turn or to the store.
func (s *Share) of(turn uint64) dlock.Grant {
	g := s.grant.OfTurn(turn)
	g.Release = func(ctx context.Context) error {
		if s.pass() {
			return nil
		}
		return s.grant.Release(ctx)
	}
	g.Ended = func(outcome error) { s.ended(turn, outcome) }
	return g
}

// ended says that a turn is over. If it was the last one, so is the grant.
func (s *Share) ended(turn uint64, outcome error) {
	s.turns.mu.Lock()
	last := s.turn == turn
	if last {
		s.turns.shut(s)
	}
	s.turns.mu.Unlock()
	if last && s.grant.Ended != nil {
		s.grant.Ended(outcome)
	}
}

// pass passes the grant on to the next waiter, if it has another turn.
func (s *Share) pass() bool {
	t := s.turns
	t.mu.Lock()
	var next []*waiter
	if s.queue.share == s {
		next = s.queue.next(1)
	}
	if len(next) > 0 {
		s.turn++
	}
	turn := s.turn
	if len(next) == 0 || turn+1 == TurnsPerGrant {
		t.shut(s)
	}
	t.mu.Unlock()
	if len(next) == 0 {
		return false
	}
	next[0].done <- outcome{lease: dlock.NewLease(next[0].ctx, s.of(turn))}
	return true
}
