package app

import (
	"context"
	"log/slog"
	"sync"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/events"
)

// leadership is the leading of this instance, for those parts that only the leader does.
type leadership struct {
	election *cluster.Election
	name     string
	events   *eventLog // may be nil
	log      *slog.Logger

	mu   sync.Mutex
	term *cluster.Term // nil: this instance does not lead
}

func newLeadership(name string, log *slog.Logger) *leadership {
	return &leadership{name: name, log: log}
}

// trouble is notified of what goes wrong in the election.
func (l *leadership) trouble(err error) {
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
	l.term = term
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
