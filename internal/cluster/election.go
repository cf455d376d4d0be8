package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// Election is one instance as a candidate and as an observer. It is safe for concurrent use; each call of Campaign is a
// separate candidate.
//
// Guarantees, by test: One leads (OneLeads), in the order of the campaigns where the store has one (ElectedInOrder).
// The fence of a term is greater than those before (ResignHandsOn). A leader that is cut off stops before the next one
// is elected, so a register that checks the fence never mixes two terms (CutOffLeaderStopsFirst). The work of a leader
// whose process was paused is refused (PausedLeaderIsFenced). Work ends with the term (LossEndsTheWork,
// LeadEndsWithItsContext). A candidate that gives up leaves nothing (CancelledCampaignLeavesNothing). A leader that is
// killed is replaced (KilledLeaderIsReplaced). A campaign outlasts failures of the store (CampaignGoesOn). Observers
// receive every leader that stays (ObserversReceiveEveryLeader), and no leader once Resign has returned (OneLeads). They
// report when the store does not answer (ObserverReportsStale).
type Election interface {
	// Campaign blocks until this instance leads or ctx ends. Then it returns the error and the cause of ctx, and the
	// instance is no candidate any more. When the store fails the campaign begins again after a pause. The term outlives
	// ctx, from which it takes values only.
	Campaign(ctx context.Context) (*Term, error)

	// Observe returns a sequence of the leaders: the one of now, and then again after changes, with the rules of
	// [Membership].Members. The zero Leader means that there is no leader. A term that no observer has seen may be left out. It is
	// news of a moment ago; what must not be done by two is guarded by the fence.
	Observe(ctx context.Context) iter.Seq2[Leader, error]
}

// Lead has a Campaign for each term.
type Lead struct {
	Election Election

	// Pause is how long Run waits after work that has ended by itself, so that others get their turn. 0 means 1 s.
	Pause time.Duration

	// OnError is called when work under a term failed, and when a resignation did. It must not block. Default: none.
	OnError func(error)
}

// Run runs work whenever this instance leads, until ctx ends: then it returns, after work has returned and the instance
// has resigned. The context of work ends with the term, with the loss as its cause. If work returns before, the
// instance resigns, and is a candidate again after a pause. OnError receives what work returns, unless the term was
// over.
func (l Lead) Run(ctx context.Context, work func(ctx context.Context, term *Term) error) {
	for ctx.Err() == nil {
		term, err := l.Election.Campaign(ctx)
		if err != nil {
			l.failed(ctx, err)
		} else if !l.lead(ctx, term, work) {
			continue
		}
		backoff.Sleep(ctx, cmp.Or(l.Pause, time.Second))
	}
}

// lead runs work under term, and reports whether it ended before the term did.
func (l Lead) lead(ctx context.Context, term *Term, work func(ctx context.Context, term *Term) error) (early bool) {
	defer term.Resign(ctx) //nolint:errcheck // After a panic; otherwise it is the second one.
	held, cancel := term.Context(ctx)
	defer cancel()
	err := work(held, term)
	early = held.Err() == nil
	if err != nil && early {
		l.failed(ctx, fmt.Errorf("cluster: leading: %w", err))
	}
	if err := term.Resign(ctx); err != nil && !errors.Is(err, dlock.ErrLost) {
		l.failed(context.WithoutCancel(ctx), err)
	}
	return early
}

func (l Lead) failed(ctx context.Context, err error) {
	if l.OnError != nil && ctx.Err() == nil {
		l.OnError(err)
	}
}
