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

// Turns makes one acquisition for all callers of a process that wait for the same key, and lets them
// take turns under its grant. Each turn is a lease of its own, with a fencing token of its own. The grant has a block of
// [TurnsPerGrant] tokens, and turn n has the nth token of the block. Callers are served first come, first served.
//
// The next acquisition begins when the grant has no turn left for the waiters. The last turn may go on meanwhile. So the process
// has its place in the queue of the store as early as a single waiter, apart from the 20 ms of sharing.
//
// It does for a process what a cohort lock does for the threads of a NUMA node: Dice, Marathe and Shavit, Lock Cohorting,
// PPoPP 2012. The zero value is ready for use.
type Turns struct {
	mu     sync.Mutex
	queues map[string]*queue
}

// Take begins an acquisition of a key: it makes the first attempt. If others hold the key, it returns what waits for it. The
// context of that has the values of one of the waiters, and ends when none is left. A grant is shared if it was
// passed to [Share.Of].
type Take func(ctx context.Context, s *Share) (lease *dlock.Lease, wait Wait, err error)

// Wait waits until a key is granted, or ctx ends.
type Wait func(ctx context.Context) (*dlock.Lease, error)

// queue is the state of one key in this process. It exists while it has a waiter, an attempt or a share.
type queue struct {
	key     string
	waiters []*waiter // first come, first served
	attempt *Share    // the acquisition in flight, or nil
	share   *Share    // the grant that has turns left, or nil

	first Share // of the caller that created the queue: one allocation for both
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

var errNobodyWaits = errors.New("driver: nobody waits any more")

// Acquire returns a lease of key: a turn under a grant of this process, or the first of a grant that take has acquired. It
// waits until then, or until ctx ends. If take fails, all who wait at this moment get its error.
func (t *Turns) Acquire(ctx context.Context, key string, take Take) (*dlock.Lease, error) {
	t.mu.Lock()
	l := t.queues[key]
	if l == nil {
		l = &queue{key: key}
		l.first.turns, l.first.queue = t, l
		l.attempt = &l.first
		if t.queues == nil {
			t.queues = map[string]*queue{}
		}
		t.queues[key] = l
		t.mu.Unlock()
		return t.first(ctx, l, take)
	}
	w := &waiter{ctx: ctx, take: take, done: make(chan outcome, 1)}
	l.waiters = append(l.waiters, w)
	t.serve(l)
	t.mu.Unlock()
	return t.await(l, w)
}

// first is Acquire for a caller that nobody precedes.
func (t *Turns) first(ctx context.Context, l *queue, take Take) (*dlock.Lease, error) {
	s := &l.first
	o, wait := s.take(ctx, take)
	switch {
	case wait != nil:
		w := &waiter{ctx: ctx, done: make(chan outcome, 1)}
		t.mu.Lock()
		l.waiters = slices.Insert(l.waiters, 0, w)
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		s.cancel, s.settled = cancel, make(chan struct{})
		t.mu.Unlock()
		go t.acquire(ctx, s, wait, nil)
		return t.await(l, w)
	case o.err != nil && o.panicked == nil && over(ctx): // about this caller alone
		t.mu.Lock()
		l.attempt = nil
		t.serve(l)
		t.mu.Unlock()
	default:
		t.settle(s, outcome{lease: o.lease, err: o.err}, 0)
	}
	return o.get()
}

// over reports whether the time of ctx is over. A client of a store may say so before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// await waits until w is served, or its ctx ends.
func (t *Turns) await(l *queue, w *waiter) (*dlock.Lease, error) {
	select {
	case o := <-w.done:
		return o.get()
	case <-w.ctx.Done():
		return nil, t.leave(l, w)
	}
}

// leave takes w out, whose ctx has ended. If it was the last one, leave waits until the acquisition in flight is taken back.
func (t *Turns) leave(l *queue, w *waiter) error {
	t.mu.Lock()
	at := slices.Index(l.waiters, w)
	var vain *Share
	if at >= 0 {
		l.waiters = slices.Delete(l.waiters, at, at+1)
		if a := l.attempt; a != nil && a.cancel != nil && len(l.waiters) == 0 && !a.vain {
			vain, a.vain = a, true
		}
		t.tidy(l)
	}
	t.mu.Unlock()
	err := dlock.Ended(w.ctx)
	switch {
	case at < 0: // it was served
		lease, failed := (<-w.done).get()
		if failed != nil {
			return failed
		}
		if failed := drop(w.ctx, lease); failed != nil { // to the next one, or the TTL frees it
			err = fmt.Errorf("%w: %w", failed, err)
		}
	case vain != nil:
		vain.cancel(errNobodyWaits)
		if <-vain.settled; errors.Is(vain.err, dlock.ErrUncertain) {
			err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
		}
	}
	return err
}

// drop releases a lease that nobody wants. It returns [dlock.ErrUncertain] if the store may still have it.
func drop(ctx context.Context, lease *dlock.Lease) error {
	if err := lease.Release(ctx); err != nil && !errors.Is(err, dlock.ErrLost) {
		return fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	return nil
}

// serve sees to it that those who wait will be served: by a turn, or by an acquisition. It requires mu.
func (t *Turns) serve(l *queue) {
	switch s := l.share; {
	case len(l.waiters) == 0 || l.attempt != nil:
	case s == nil:
		w := l.waiters[0]
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.ctx))
		l.attempt = &Share{turns: t, queue: l, cancel: cancel, settled: make(chan struct{})}
		go t.acquire(ctx, l.attempt, nil, w.take)
	case s.end == nil: // its holder may be slow
		s.end = time.AfterFunc(time.Until(s.until), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			s.shut()
		})
	}
	t.tidy(l)
}

func (t *Turns) tidy(l *queue) {
	if len(l.waiters) == 0 && l.attempt == nil && l.share == nil && t.queues[l.key] == l {
		delete(t.queues, l.key)
	}
}

// acquire acquires the key for those who wait: by wait, or from the beginning.
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
	if served := t.settle(s, o, 1); served == 0 && o.err == nil {
		o.err = drop(ctx, o.lease)
	}
	s.err = o.err
	s.cancel(nil)
	close(s.settled)
}

// settle ends the attempt of s. Of those who wait, n get its lease, or all its error.
func (t *Turns) settle(s *Share, o outcome, n int) (served int) {
	t.mu.Lock()
	l := s.queue
	l.attempt = nil
	if o.err == nil && s.grant.Release != nil && !s.over {
		l.share, s.lease, s.until = s, o.lease, time.Now().Add(maxSharing)
	}
	switch {
	case s.vain && o.err != nil: // those who wait now have come later
		n = 0
	case o.err != nil:
		n = len(l.waiters)
	}
	waiters := l.next(n)
	t.serve(l)
	t.mu.Unlock()
	for _, w := range waiters {
		w.done <- o
		o.panicked = nil
	}
	return len(waiters)
}

// next takes out up to n of those who wait. It requires mu.
func (l *queue) next(n int) (served []*waiter) {
	n = min(n, len(l.waiters))
	served = slices.Clone(l.waiters[:n])
	l.waiters = slices.Delete(l.waiters, 0, n)
	return served
}

// Waiting returns how many wait for key in this process without a place of their own in the store.
func (t *Turns) Waiting(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.queues[key]
	if l == nil {
		return 0
	}
	n := len(l.waiters)
	if n > 0 && l.attempt != nil && l.attempt.cancel != nil {
		n--
	}
	return n
}

// Shut ends the sharing of the grants of key, and of a grant that may be on its way. Callers use it when the tokens of
// the grants are too low, or when another process is to have the key. They call it after a request for that, also if
// the request failed, because the store may have done it.
func (t *Turns) Shut(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.queues[key]
	if l == nil {
		return
	}
	if l.attempt != nil {
		l.attempt.over = true
	}
	if l.share != nil {
		l.share.shut()
	}
}
