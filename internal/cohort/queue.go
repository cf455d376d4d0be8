package cohort

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// line is those who wait for one key, first come, first served. It has a leader as long as it
// exists. Everything in it is guarded by Group.mu.
type line[K comparable, T any] struct {
	key     K
	waiting []*ticket[T]
	left    int                     // tickets in waiting whose callers have left
	cancel  context.CancelCauseFunc // ends the leader's wait for the lease; nil when it does not wait
}

// ticket is one call of Do.
type ticket[T any] struct {
	item   T
	ctx    context.Context //nolint:containedctx // That of Do, for whoever works on its behalf.
	answer chan error      // has room for one

	// Guarded by Group.mu.
	seq   uint64
	out   bool      // of the line: it is answered, or in a batch
	batch *batch[T] // while it is being committed
	last  error     // of Commit, after which it was put back
	over  error     // why it will not be put back again
	gone  bool      // its caller's context has ended
}

// batch is what is being committed.
type batch[T any] struct {
	tickets []*ticket[T]
	callers int // whose context has not ended; guarded by Group.mu
	cancel  context.CancelCauseFunc
}

// drop counts a caller who has gone.
func (b *batch[T]) drop(why error) {
	if b.callers--; b.callers == 0 {
		b.cancel(why)
	}
}

// join puts t into the line of key, which gets a leader if it has none.
func (g *Group[K, L, T]) join(key K, t *ticket[T]) (*line[K, T], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.lines[key]
	switch {
	case !ok:
		l = &line[K, T]{key: key}
		g.lines[key] = l
		g.leaders.Go(func() { g.lead(l) })
	case l.len() >= g.cfg.MaxQueue:
		return nil, ErrFull
	}
	g.seq++
	t.seq = g.seq
	l.waiting = append(l.waiting, t)
	return l, nil
}

// len returns how many wait.
func (l *line[K, T]) len() int { return len(l.waiting) - l.left }

// leave removes t from its queue, and returns the error for its caller; nil if t has left it already. It is also nil if
// only the maximum wait of t is over and an attempt has an unknown outcome: then its answer will follow.
func (g *Group[K, L, T]) leave(l *line[K, T], t *ticket[T], why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !t.out && t.ctx.Err() == nil && t.last != nil && g.cfg.Unknown(t.last) {
		return nil // as putBack has it: the answer is to be what became of that attempt
	}
	t.over = cmp.Or(t.over, why)
	if t.out {
		if !t.gone && t.ctx.Err() != nil {
			t.gone = true
			if t.batch != nil {
				t.batch.drop(why)
			}
		}
		return nil
	}
	l.left++
	if l.len() == 0 && l.cancel != nil {
		l.cancel(why)
	}
	if 2*l.left > len(l.waiting) {
		l.waiting = slices.DeleteFunc(l.waiting, func(t *ticket[T]) bool { return t.over != nil })
		l.left = 0
	}
	return t.verdict(t.over)
}

// verdict is the answer to a caller who is not served because of err: what the last attempt left
// open is still open.
func (t *ticket[T]) verdict(err error) error {
	if t.last == nil {
		return err
	}
	return errors.Join(err, t.last)
}

// nextLease returns the latest arrival and a context for the leader's next lease. The context ends if all leave before the
// leader has the lease. cancel is nil when nobody waits: then the leader has resigned.
func (g *Group[K, L, T]) nextLease(l *line[K, T]) (ctx context.Context, cancel context.CancelCauseFunc, seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(t *ticket[T]) bool { return t.over == nil })
	if i < 0 {
		delete(g.lines, l.key)
		return nil, nil, 0
	}
	ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(l.waiting[i].ctx))
	return ctx, l.cancel, g.seq
}

// Waiting returns how many callers of [Group.Do] wait in the queues of the keys that match chooses. Those in a batch do not wait.
func (g *Group[K, L, T]) Waiting(match func(K) bool) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, l := range g.lines {
		if match(key) {
			n += l.len()
		}
	}
	return n
}

// leaseHeld has the leader's context outlast the line: it has the lease.
func (g *Group[K, L, T]) leaseHeld(l *line[K, T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.cancel = nil
}

// waits reports whether anybody waits.
func (g *Group[K, L, T]) waits(l *line[K, T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return l.len() > 0
}

// latest returns the latest arrival.
func (g *Group[K, L, T]) latest() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seq
}

// take takes those who came first out of the line, as many as a batch may have.
func (g *Group[K, L, T]) take(l *line[K, T]) (taken []*ticket[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := 0
	for ; i < len(l.waiting) && len(taken) < g.cfg.MaxBatch; i++ {
		t := l.waiting[i]
		if t.over != nil {
			l.left--
			continue
		}
		t.out = true
		taken = append(taken, t)
	}
	l.waiting = slices.Delete(l.waiting, 0, i)
	return taken
}

// begin makes a batch of those tickets whose callers have not gone, and answers the others. Its
// context ends when they all have.
func (g *Group[K, L, T]) begin(ctx context.Context, tickets []*ticket[T]) (context.Context, *batch[T]) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &batch[T]{cancel: cancel}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tickets {
		if t.gone {
			t.answer <- t.verdict(t.over)
			continue
		}
		t.batch = b
		b.tickets = append(b.tickets, t)
	}
	b.callers = len(b.tickets)
	return ctx, b
}

// finish answers tickets with err.
func (g *Group[K, L, T]) finish(tickets []*ticket[T], err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tickets {
		if err != nil && t.gone {
			t.answer <- errors.Join(t.over, err)
			continue
		}
		t.answer <- err
	}
}

// putBack puts tickets that were not served where they were, but answers those whose callers wait no longer. A caller
// whose maximum wait is over, and whose attempt has an unknown outcome, continues to wait.
func (g *Group[K, L, T]) putBack(l *line[K, T], tickets []*ticket[T], err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tickets {
		t.last = cmp.Or(err, t.last)
		if err != nil && !t.gone && g.cfg.Unknown(err) {
			t.over = nil
		}
		if t.over != nil {
			t.answer <- t.verdict(t.over)
			continue
		}
		t.batch, t.out = nil, false
		l.waiting = append(l.waiting, t)
	}
	slices.SortFunc(l.waiting, func(a, b *ticket[T]) int { return cmp.Compare(a.seq, b.seq) })
}

// dismiss answers those of the first tickets, up to seq, to whom judge has something to say.
func (g *Group[K, L, T]) dismiss(l *line[K, T], seq uint64, judge func(*ticket[T]) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(t *ticket[T]) bool {
		if t.over != nil {
			l.left--
			return true
		}
		if t.seq > seq {
			return false
		}
		err := judge(t)
		if err == nil {
			return false
		}
		t.out = true
		t.answer <- err
		return true
	})
}
