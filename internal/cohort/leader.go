package cohort

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

const (
	retryPause = time.Millisecond // longest first pause before another lease is asked for; doubles
	maxPause   = 32 * retryPause
)

// lead serves a line, lease after lease, until nobody waits in it. Between two leases others
// have their turn.
func (g *Group[K, L, T]) lead(l *line[K, T]) {
	pause := retryPause
	for {
		ctx, cancel, seq := g.nextLease(l)
		if cancel == nil {
			return
		}
		g.refuse(ctx, l)
		held, err := false, error(nil)
		if g.waits(l) {
			err = g.cfg.Hold(ctx, l.key, func(ctx context.Context, lease L) error {
				held = true
				return g.serve(ctx, l, lease)
			})
		}
		cancel(nil)
		switch {
		case err == nil:
			pause = retryPause
		case !held && !g.cfg.Retry(err):
			g.dismiss(l, seq, func(t *ticket[T]) error { return t.verdict(err) })
		default: // lost, refused or to be retried: try has put the tickets back
			time.Sleep(rand.N(pause))
			pause = min(2*pause, maxPause)
		}
	}
}

// serve commits what waits in the line, batch by batch, for as long as one lease may be kept.
// An error says that the lease is of no more use.
func (g *Group[K, L, T]) serve(ctx context.Context, l *line[K, T], lease L) error {
	g.leaseHeld(l)
	end := time.Now().Add(g.cfg.MaxHold)
	for n := range g.cfg.MaxBatches {
		if n > 0 {
			if time.Now().After(end) {
				return nil
			}
			g.refuse(ctx, l)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tickets := g.take(l)
		if len(tickets) == 0 {
			return nil
		}
		if err := g.try(ctx, l, lease, tickets); err != nil {
			return err
		}
	}
	return nil
}

// try commits tickets, in halves if that fails for the sake of one of them, and answers them.
// After an error they are back in the line.
func (g *Group[K, L, T]) try(ctx context.Context, l *line[K, T], lease L, tickets []*ticket[T]) error {
	work, b := g.begin(ctx, tickets)
	defer b.cancel(nil)
	n := len(b.tickets)
	if n == 0 {
		return nil
	}
	err := g.commit(work, l.key, lease, b.tickets)
	switch {
	case err != nil && (ctx.Err() != nil || g.cfg.Retry(err)):
		g.putBack(l, b.tickets, err)
		return err
	case err == nil || n == 1 || work.Err() != nil || g.cfg.Common(err):
		g.finish(b.tickets, err)
		return nil
	}
	if err := g.try(ctx, l, lease, b.tickets[:n/2]); err != nil {
		g.putBack(l, b.tickets[n/2:], nil)
		return err
	}
	return g.try(ctx, l, lease, b.tickets[n/2:])
}

// commit calls Commit. A panic there is an error like another: the caller of that item gets it after the other items of
// the batch have been served.
func (g *Group[K, L, T]) commit(ctx context.Context, key K, lease L, tickets []*ticket[T]) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("cohort: commit %v: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	items := make([]T, len(tickets))
	for i, t := range tickets {
		items[i] = t.item
	}
	return g.cfg.Commit(ctx, key, lease, items)
}

// refuse answers those in the line who cannot be served now.
func (g *Group[K, L, T]) refuse(ctx context.Context, l *line[K, T]) {
	if g.cfg.Refuse == nil {
		return
	}
	seq := g.latest() // before the look, which must not refuse those who come after it
	judge := g.cfg.Refuse(ctx, l.key)
	if judge == nil {
		return
	}
	g.dismiss(l, seq, func(t *ticket[T]) error {
		if t.last == nil {
			return judge(t.item)
		}
		return nil // what became of it is for Commit to find out
	})
}
