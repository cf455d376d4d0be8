package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
)

// ElectionConfig is the configuration of an [Election].
type ElectionConfig struct {
	// Locker decides who leads. Its guarantees are those of the election: the order of the candidates, the validity of
	// a lease, and the delay after a leader dies. Required.
	Locker dlock.Locker

	// Registry gets the announcement of the leader. Required.
	Registry Registry

	// Name is that of this instance. Required.
	Name string

	// Key distinguishes elections of one Locker and Registry. Empty means "leader".
	Key string

	// Pause is how long Lead waits after work that has ended by itself, so that others
	// get their turn. 0 means 1 s.
	Pause time.Duration

	// OnError is called when a campaign has to begin again, when work under a term
	// failed, and when an announcement could not be taken down. It must not block. Default:
	// none.
	OnError func(error)
}

// validate completes the configuration.
func (c *ElectionConfig) validate() error {
	var errs []error
	if c.Locker == nil || c.Registry == nil {
		errs = append(errs, errors.New("a locker and a registry are required"))
	}
	if err := (Member{Name: c.Name}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	c.Key = cmp.Or(c.Key, "leader")
	c.Pause = cmp.Or(c.Pause, time.Second)
	return errors.Join(errs...)
}

// Election is one instance as a candidate and as an observer. It is safe for concurrent use; each call of Campaign is a
// separate candidate.
//
// Guarantees, by test: One leads (OneLeads), in the order of the campaigns where the locker has one (ElectedInOrder).
// The fence of a term is greater than those before (ResignHandsOn). A leader that is cut off stops before the next one
// is elected, so a register that checks the fence never mixes two terms (CutOffLeaderStopsFirst). The work of a leader
// whose process was paused is refused (PausedLeaderIsFenced). Work ends with the term (LossEndsTheWork,
// LeadEndsWithItsContext). A candidate that gives up leaves nothing (CancelledCampaignLeavesNothing). A leader that is
// killed is replaced (KilledLeaderIsReplaced). A campaign outlasts failures of the store (CampaignGoesOn). Observers
// receive every leader that stays (ObserversReceiveEveryLeader), and no leader whose term has ended when there is
// another (LateAnnouncementIsIgnored). They report when the store does not answer (ObserverReportsStale). The
// announcement is deleted before Resign returns (AnnouncementEndsWithTheTerm, AnnouncementEndsWithItsContext).
type Election struct {
	cfg ElectionConfig
}

// NewElection returns an Election in which nothing happens yet. It starts nothing.
func NewElection(cfg ElectionConfig) (*Election, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cluster: election: %w", err)
	}
	return &Election{cfg}, nil
}

// Campaign blocks until this instance leads or ctx ends. Then it returns the error and the cause of ctx, and the
// instance is no candidate any more. Candidates are elected in the order in which they came, if the Locker is first
// come, first served. When the store fails the campaign begins again, behind those who wait, after a pause of 50 ms to
// 1 s. It returns [dlock.ErrReentry] as the Locker does. The term outlives ctx, from which it takes values only.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	pauses := backoff.Decorrelated{Min: 50 * time.Millisecond, Max: time.Second}
	for pause := time.Duration(0); ; {
		lease, err := e.cfg.Locker.Acquire(ctx, "election:"+e.cfg.Key)
		switch {
		case err == nil:
			return e.begin(ctx, lease), nil
		case ctx.Err() != nil, errors.Is(err, dlock.ErrReentry):
			return nil, fmt.Errorf("cluster: campaign for %q: %w", e.cfg.Key, err)
		}
		e.cfg.OnError(fmt.Errorf("cluster: campaign for %q: %w", e.cfg.Key, err))
		pause = pauses.Next(pause)
		backoff.Sleep(ctx, pause)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cluster: campaign for %q: %w: %w", e.cfg.Key, dlock.Ended(ctx), err)
		}
	}
}

// Observe returns a sequence of the leaders: the one of now, and then again after
// changes, with the rules of [Membership].Members. The zero Leader means that nobody
// leads. A term that nobody has seen may be left out. It is news of a moment ago;
// what must not be done by two is guarded by the fence.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return e.cfg.Registry.Leaders(ctx, e.cfg.Key)
}

// Lead runs work whenever this instance leads, until ctx ends: then it returns nil,
// after work has returned and the instance has resigned. The context of work ends with
// the term, with the loss as its cause. If work returns before, the instance resigns,
// and is a candidate again after a pause. OnError receives what work returns, unless
// the term was over.
func (e *Election) Lead(ctx context.Context, work func(ctx context.Context, term *Term) error) error {
	for ctx.Err() == nil {
		term, err := e.Campaign(ctx)
		if errors.Is(err, dlock.ErrReentry) {
			return err
		}
		if err == nil && e.lead(ctx, term, work) {
			backoff.Sleep(ctx, e.cfg.Pause)
		}
	}
	return nil
}

// lead runs work under term, and reports whether it ended before the term did.
func (e *Election) lead(ctx context.Context, term *Term, work func(ctx context.Context, term *Term) error) (early bool) {
	defer term.Resign(ctx) //nolint:errcheck // After a panic; otherwise it is the second one.
	held, cancel := term.Context(ctx)
	defer cancel()
	err := work(held, term)
	early = held.Err() == nil
	if err != nil && early {
		e.cfg.OnError(fmt.Errorf("cluster: leading %q: %w", e.cfg.Key, err))
	}
	if err := term.Resign(ctx); err != nil && !errors.Is(err, dlock.ErrLost) {
		e.cfg.OnError(err)
	}
	return early
}
