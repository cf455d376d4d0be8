package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/events"
)

// troubled is how long after its last error an election counts as failed.
const troubled = 2 * sessionTimeout

// leadership is the leading of this instance, for those parts that only the leader does. As a
// [dlock.Locker] it grants each key once, for the duration of the term, and a holder that releases one
// back has resigned.
type leadership struct {
	election *cluster.Election
	renewer  *driver.Renewer
	name     string
	events   *eventLog // may be nil
	log      *slog.Logger

	mu     sync.Mutex
	term   *cluster.Term   // nil: this instance does not lead
	taken  map[string]bool // keys of the term
	err    error           // why the last campaign had to begin again
	failed time.Time
}

func newLeadership(name string, log *slog.Logger) *leadership {
	l := &leadership{name: name, log: log}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: sessionTimeout, Renew: func(_ context.Context, held []dlock.Held) []error {
		return make([]error, len(held)) // a term that ends takes its keys with it
	}})
	return l
}

// trouble is notified of what goes wrong in the election.
func (l *leadership) trouble(err error) {
	if errors.Is(err, dlock.ErrReleased) {
		return // a holder that released a key has resigned
	}
	l.mu.Lock()
	l.err, l.failed = err, time.Now()
	l.mu.Unlock()
	l.log.Warn("election failed; retrying", slog.String("error", err.Error()))
}

// run is a candidate until ctx ends. It leads whenever it is elected.
func (l *leadership) run(ctx context.Context) error {
	return l.election.Lead(ctx, func(ctx context.Context, term *cluster.Term) error {
		l.begin(term)
		l.log.InfoContext(ctx, "leading", slog.Uint64("term", term.Fence().Token))
		l.publish(term, false)
		<-ctx.Done() // which ends with the term
		l.begin(nil)
		l.publish(term, true)
		l.log.InfoContext(ctx, "lost leadership", slog.String("cause", context.Cause(ctx).Error()))
		return nil
	})
}

func (l *leadership) begin(term *cluster.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.taken = term, make(map[string]bool)
	if term != nil {
		l.err = nil
	}
}

// publish publishes to all instances who leads. Only a surviving instance publishes the end of a term.
func (l *leadership) publish(term *cluster.Term, ended bool) {
	if l.events != nil {
		l.events.Leader(events.Leader{Name: l.name, Term: term.Fence().Token, Ended: ended})
	}
}

// during runs f if this instance leads, with a context that ends with the term, and reports
// whether it does.
func (l *leadership) during(ctx context.Context, f func(context.Context, *cluster.Term) error) (leads bool, err error) {
	l.mu.Lock()
	term := l.term
	l.mu.Unlock()
	if term == nil {
		return false, nil
	}
	ctx, cancel := term.Context(ctx)
	defer cancel()
	return true, f(ctx, term)
}

// Acquire implements [dlock.Locker].
func (l *leadership) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return driver.Poll(ctx, backoff.Decorrelated{Min: 100 * time.Millisecond, Max: time.Second}, func(ctx context.Context) (*dlock.Lease, error) {
		return l.TryAcquire(ctx, key)
	})
}

// TryAcquire implements [dlock.Locker].
func (l *leadership) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	term, err := l.take(key)
	if err != nil {
		return nil, err
	}
	fence := dlock.Fence{Token: term.Fence().Token, Owner: term.Fence().Owner + "/" + key}
	over, stop := term.Context(context.WithoutCancel(ctx))
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: fence, Sent: time.Now(), TTL: sessionTimeout, Renewer: termRenewer{l.renewer, over},
		Release: func(ctx context.Context) error {
			if err := term.Resign(ctx); !errors.Is(err, dlock.ErrReleased) {
				return err
			}
			return nil
		},
		Ended: func(error) { // without waiting for what the holder does with the events
			l.free(term, key)
			stop()
		},
	}), nil
}

// termRenewer ends a grant together with its term.
type termRenewer struct {
	*driver.Renewer

	over context.Context //nolint:containedctx // It ends with the term.
}

// Keep implements [dlock.Renewer].
func (r termRenewer) Keep(ctx context.Context, h *dlock.Hold) bool {
	context.AfterFunc(r.over, func() { h.Lose(nil) })
	return r.Renewer.Keep(ctx, h)
}

// take records that a key of the term is held.
func (l *leadership) take(key string) (*cluster.Term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	term := l.term
	switch {
	case (term == nil || term.Err() != nil) && l.err != nil && time.Since(l.failed) < troubled:
		return nil, fmt.Errorf("no leader can be elected: %w", l.err)
	case term == nil, term.Err() != nil, l.taken[key]:
		return nil, fmt.Errorf("leader: %q: %w", key, dlock.ErrHeld)
	}
	l.taken[key] = true
	return term, nil
}

// free makes a key of the term available again. A key that is lost while the term continues, because the process was paused,
// would otherwise have no holder until the term ends.
func (l *leadership) free(term *cluster.Term, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == term {
		delete(l.taken, key)
	}
}
