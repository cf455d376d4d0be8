package share

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// A grant is shared for at most Turns turns, and no turn begins later than sharing after the first one. So a waiter of
// another process waits a little longer than for one lease, however many wait here.
const (
	Turns   = 16
	sharing = 20 * time.Millisecond
)

// Locker shares the grants of another Locker. See the package comment.
type Locker struct {
	next dlock.Locker

	mu     sync.Mutex
	queues map[string]*queue
}

// New returns a Locker that shares the grants of next. The caller closes next.
func New(next dlock.Locker) *Locker { return &Locker{next: next, queues: map[string]*queue{}} }

// queue is the state of one key in this process. It exists while it has a waiter, an acquisition or a grant.
type queue struct {
	key     string
	waiters []*waiter // first come, first served
	asking  bool      // one caller is acquiring the key
	grant   *grant    // the one that has turns left, or nil
}

// grant is one of the store, which callers share.
type grant struct {
	lease *dlock.Lease
	turn  uint64
	until time.Time   // no turn begins later
	end   *time.Timer // ends the sharing then, if anybody waits
}

// waiter is one call of Acquire that others precede.
type waiter struct {
	ctx  context.Context //nolint:containedctx // For the values of its lease.
	done chan outcome
}

// outcome is what a waiter gets: a lease, an error, or neither, if it is its turn to ask the store.
type outcome struct {
	lease *dlock.Lease
	err   error
}

// Acquire implements [dlock.Locker]. It returns a turn under a grant of this process, or the first of a new grant. If the
// acquisition fails, all who wait for key at that moment get its error, unless the context of its caller has ended.
func (s *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, s, nil, key); lease != nil || err != nil {
		return lease, err
	}
	s.mu.Lock()
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key, asking: true}
		s.queues[key] = q
		s.mu.Unlock()
		return s.ask(ctx, q)
	}
	w := &waiter{ctx: ctx, done: make(chan outcome, 1)}
	q.waiters = append(q.waiters, w)
	s.serve(q)
	s.mu.Unlock()
	select {
	case o := <-w.done:
		if o.lease != nil || o.err != nil {
			return o.lease, o.err
		}
		return s.ask(ctx, q)
	case <-ctx.Done():
		return nil, s.leave(q, w)
	}
}

// TryAcquire implements [dlock.Locker]. Its grant has one turn.
func (s *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, s, nil, key); lease != nil || err != nil {
		return lease, err
	}
	lease, err := s.next.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	held := scaled(lease.Held())
	return dlock.Over(ctx, dlock.Grant{Key: held.Key, Fence: held.Fence, Kind: held.Kind, Backend: s, Release: lease.Release}, lease), nil
}

// ask acquires the key from the store, for this caller and the later ones.
func (s *Locker) ask(ctx context.Context, q *queue) (turn *dlock.Lease, err error) {
	failed := errPanicked
	var lease *dlock.Lease
	defer func() { // after a panic, too
		s.mu.Lock()
		defer s.mu.Unlock()
		q.asking = false
		switch {
		case lease != nil:
			q.grant = &grant{lease: lease, until: time.Now().Add(sharing)}
			turn = s.begin(ctx, q, q.grant)
		case failed != nil && !over(ctx):
			for _, w := range q.waiters {
				w.done <- outcome{err: failed}
			}
			q.waiters = nil
		}
		s.serve(q)
	}()
	lease, err = s.next.Acquire(ctx, q.key)
	failed = err
	return nil, err
}

var errPanicked = errors.New("share: the acquisition of another caller has panicked")

// over reports whether the time of ctx is over. A client of a store may say so before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// begin returns the next turn under g. It requires mu.
func (s *Locker) begin(ctx context.Context, q *queue, g *grant) *dlock.Lease {
	held := scaled(g.lease.Held())
	if g.turn > 0 {
		held.Fence.Token += g.turn
		held.Fence.Owner += "+" + strconv.FormatUint(g.turn, 10)
	}
	if g.turn++; g.turn == Turns && q.grant == g {
		s.drop(q, g)
	}
	return dlock.Over(ctx, dlock.Grant{
		Key: held.Key, Fence: held.Fence, Kind: held.Kind, Backend: s,
		Release: func(ctx context.Context) error {
			if s.pass(q, g) {
				return nil
			}
			return g.lease.Release(ctx)
		},
		Abandon: func() {
			go func() { // begin may be what finds the loss, under mu
				s.mu.Lock()
				defer s.mu.Unlock()
				s.drop(q, g)
			}()
		},
	}, g.lease)
}

// scaled gives a key of the store the first token of its block.
func scaled(h dlock.Held) dlock.Held {
	h.Fence.Token *= Turns
	return h
}

// pass gives g to the first waiter, if it has another turn.
func (s *Locker) pass(q *queue, g *grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.grant != g || len(q.waiters) == 0 || !time.Now().Before(g.until) || g.lease.Err() != nil {
		s.drop(q, g)
		return false
	}
	w := q.first()
	w.done <- outcome{lease: s.begin(w.ctx, q, g)}
	return true
}

// drop ends the sharing of g. It requires mu.
func (s *Locker) drop(q *queue, g *grant) {
	if g.end != nil {
		g.end.Stop()
	}
	if q.grant == g {
		q.grant = nil
		s.serve(q)
	}
}

// serve has the first waiter acquire the key if there is no grant to wait for, and bounds the sharing of a grant. It requires mu.
func (s *Locker) serve(q *queue) {
	switch g := q.grant; {
	case q.asking:
	case g == nil && len(q.waiters) > 0:
		q.asking = true
		q.first().done <- outcome{}
	case g == nil:
		delete(s.queues, q.key)
	case len(q.waiters) > 0 && g.end == nil: // its holder may be slow
		g.end = time.AfterFunc(time.Until(g.until), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.drop(q, g)
		})
	}
}

// first removes the first waiter and returns it. It requires mu.
func (q *queue) first() *waiter {
	w := q.waiters[0]
	q.waiters = slices.Delete(q.waiters, 0, 1)
	return w
}

// leave removes w, whose ctx has ended.
func (s *Locker) leave(q *queue, w *waiter) error {
	s.mu.Lock()
	at := slices.Index(q.waiters, w)
	if at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
	}
	s.mu.Unlock()
	if at >= 0 {
		return dlock.Ended(w.ctx)
	}
	switch o := <-w.done; { // it was served at this moment
	case o.err != nil:
		return o.err
	case o.lease != nil: // to the next one, or the TTL frees it
		if err := o.lease.Release(w.ctx); err != nil && !errors.Is(err, dlock.ErrLost) {
			return fmt.Errorf("%w: %w: %w", dlock.ErrUncertain, err, dlock.Ended(w.ctx))
		}
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		q.asking = false
		s.serve(q)
	}
	return dlock.Ended(w.ctx)
}
