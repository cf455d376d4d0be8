package app

import (
	"context"
	"log/slog"
	"sync"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/events"
)

// leadership is the leading of this instance, for those parts that only the leader does.
type leadership struct {
	election *sqlcluster.Election
	events   *eventLog // may be nil
	log      *slog.Logger

	mu   sync.Mutex
	term *cluster.Term // nil: this instance does not lead
}

// run is a candidate until ctx ends. It leads whenever it is elected.
func (l *leadership) run(ctx context.Context) {
	failed := func(err error) { l.log.WarnContext(ctx, "leader failed", slog.String("error", err.Error())) }
	cluster.Lead{Election: l.election, OnError: failed}.Run(ctx, func(ctx context.Context, term *cluster.Term) error {
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
	l.term = term
}

// leads reports whether this instance leads.
func (l *leadership) leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil
}

// publish publishes to all instances who leads. Only a surviving instance publishes the end of a term.
func (l *leadership) publish(term *cluster.Term, ended bool) {
	if l.events != nil {
		l.events.Leader(events.Leader{Name: term.Leader().Name, Term: term.Fence().Token, Ended: ended})
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
