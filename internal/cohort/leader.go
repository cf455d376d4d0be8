package cohort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"example.com/shop/internal/dlock"
)

const (
	retryPause = time.Millisecond // longest first pause before another lease is asked for; doubles
	maxPause   = 32 * retryPause
)

// errExited says that Commit ended its goroutine, as a test does that has failed.
var errExited = errors.New("cohort: Commit did not return")

// lead serves a line, lease after lease, until nobody waits in it. Between two leases others
// have their turn.
func (g *Group[T]) lead(l *line[T]) {
	pause := retryPause
	for {
		ctx, cancel, seq := g.open(l)
		if cancel == nil {
			return
		}
		g.refuse(ctx, l)
		held, err := false, error(nil)
		var rest <-chan error
		if g.waits(l) {
			err = g.cfg.Hold(ctx, l.key, func(ctx context.Context, f dlock.Fence) (err error) {
				held = true
				rest, err = g.serve(ctx, l, f)
				return err
			})
		}
		cancel(nil)
		if rest != nil {
			err = cmp.Or(<-rest, err)
		}
		switch {
		case err == nil:
			pause = retryPause
		case !held && !g.cfg.Retry(err):
			g.dismiss(l, seq, func(t *ticket[T]) error { return t.verdict(err) })
		default:
			time.Sleep(rand.N(pause))
			pause = min(2*pause, maxPause)
		}
	}
}

// serve commits what waits in the line, batch by batch, for as long as one lease may be kept.
// An error says that the lease is of no more use. If the last batch has been handed over, rest is
// where its end will be told.
func (g *Group[T]) serve(ctx context.Context, l *line[T], f dlock.Fence) (rest <-chan error, err error) {
	g.close(l)
	end := time.Now().Add(g.cfg.MaxHold)
	for n := range g.cfg.MaxBatches {
		if n > 0 {
			if time.Now().After(end) {
				return nil, nil
			}
			g.refuse(ctx, l)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tickets := g.take(l)
		if len(tickets) == 0 {
			return nil, nil
		}
		last := func() bool { return n == g.cfg.MaxBatches-1 || !g.waits(l) || time.Now().After(end) }
		work, cancel, h := g.handing(ctx, tickets, last)
		done := make(chan error, 1)
		go func() {
			err := errExited
			defer func() {
				h.stop()
				cancel(nil)
				done <- err
			}()
			err = g.try(work, l, f, tickets)
		}()
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
		case <-h.closed:
			return done, nil
		}
	}
	return nil, nil
}

// try commits tickets, in halves if that fails for the sake of one of them, and answers them.
// After an error they are back in the line.
func (g *Group[T]) try(ctx context.Context, l *line[T], f dlock.Fence, tickets []*ticket[T]) error {
	work, b := g.begin(ctx, tickets)
	defer b.cancel(nil)
	n := len(b.tickets)
	if n == 0 {
		return nil
	}
	err := g.commit(work, l.key, f, b.tickets)
	switch {
	case err != nil && (ctx.Err() != nil || g.cfg.Retry(err)):
		g.putBack(l, b.tickets, err)
		return err
	case err == nil || n == 1 || work.Err() != nil || g.cfg.Common(err):
		g.finish(b.tickets, err)
		return nil
	}
	ctx = context.WithValue(ctx, handingKey{}, nil)
	if err := g.try(ctx, l, f, b.tickets[:n/2]); err != nil {
		g.putBack(l, b.tickets[n/2:], nil)
		return err
	}
	return g.try(ctx, l, f, b.tickets[n/2:])
}

// commit calls Commit. A panic there is an error like another: the caller whose item it is gets
// it, when its neighbours have been served.
func (g *Group[T]) commit(ctx context.Context, key string, f dlock.Fence, tickets []*ticket[T]) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("cohort: commit %q: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	items := make([]T, len(tickets))
	for i, t := range tickets {
		items[i] = t.item
	}
	return g.cfg.Commit(ctx, key, f, items)
}

// refuse answers those in the line who cannot be served now.
func (g *Group[T]) refuse(ctx context.Context, l *line[T]) {
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
