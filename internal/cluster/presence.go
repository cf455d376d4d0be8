package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// Place is the entry of one member in a store. A backend gives one to [Enter], which
// calls its methods one at a time.
type Place interface {
	// Take makes the entry. It waits for another instance that has the name, and returns a [*NameTakenError] if that
	// turns out to live. again says that the entry was there before and is lost. Then an entry of the same name and
	// address is that of a successor, and Take returns [ErrReplaced]. Any other error is a failed attempt, which is
	// repeated; it may have taken effect.
	Take(ctx context.Context, again bool) error

	// Keep blocks while the entry is there. It returns nil when it is not, or the error
	// of ctx. It tries again by itself when the store does not answer.
	Keep(ctx context.Context) error

	// Drop deletes the entry if there is one, or leaves that to the store.
	Drop(ctx context.Context) error
}

// PresenceConfig is the configuration of a [Presence]. It is for backends.
type PresenceConfig struct {
	Place   Place
	Limit   time.Duration // of Place.Drop
	OnError func(error)   // receives failed attempts
}

// Presence is a member as it is itself: an entry that is made again when the store
// has lost it. Its methods are safe for concurrent use.
type Presence struct {
	cfg    PresenceConfig
	member Member
	ctx    context.Context //nolint:containedctx // Done when it is over, and its cause says why.
	end    context.CancelCauseFunc
	kept   chan struct{} // closed when nobody keeps the entry any more
}

// Enter makes m a member, as [Membership].Join says, by a place of a backend. It
// starts one goroutine, which ends when the presence is over; [Presence.Leave] waits
// for it.
func Enter(ctx context.Context, m Member, cfg PresenceConfig) (*Presence, error) {
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	p := &Presence{cfg: cfg, member: m, kept: make(chan struct{})}
	err := m.Validate()
	if err == nil {
		err = p.take(ctx, false)
		if err != nil {
			_ = p.drop(ctx) // the store forgets it otherwise
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: join as %q: %w", m.Name, err)
	}
	p.ctx, p.end = context.WithCancelCause(context.WithoutCancel(ctx))
	go p.keep()
	return p, nil
}

// Done is closed when the instance will not be a member again by itself: after Leave, or when another instance has its
// name.
func (p *Presence) Done() <-chan struct{} { return p.ctx.Done() }

// Err returns nil as long as Done is open, then [ErrLeft], [ErrReplaced] or a
// [*NameTakenError]. While the store has lost the member and it is about to join
// again, Err is nil.
func (p *Presence) Err() error { return context.Cause(p.ctx) }

// Leave ends the membership, and returns when the entry is deleted or the store has not answered for a moment. In that
// case the store deletes the entry by itself, like that of a dead instance. Leave uses only the values of ctx. It
// returns nil, the error of the store, or the reason for which the presence was over before. After any error, the
// presence is over.
func (p *Presence) Leave(ctx context.Context) error {
	p.end(ErrLeft)
	<-p.kept
	if err := p.Err(); !errors.Is(err, ErrLeft) {
		return err
	}
	if err := p.drop(ctx); err != nil {
		return fmt.Errorf("cluster: leave as %q: %w", p.member.Name, err)
	}
	return nil
}

func (p *Presence) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Limit)
	defer cancel()
	return p.cfg.Place.Drop(ctx)
}

// keep makes the entry again whenever it is lost.
func (p *Presence) keep() {
	defer close(p.kept)
	for {
		err := p.cfg.Place.Keep(p.ctx)
		if err == nil {
			err = p.take(p.ctx, true)
		}
		if err != nil {
			p.end(err) // unless Leave was quicker
			return
		}
	}
}

// take makes the entry. It repeats what fails until ctx ends.
func (p *Presence) take(ctx context.Context, again bool) error {
	pauses := backoff.Decorrelated{Min: 20 * time.Millisecond, Max: time.Second}
	var failed error
	for pause := time.Duration(0); ; {
		if ctx.Err() != nil {
			return errors.Join(dlock.Ended(ctx), failed)
		}
		err := p.cfg.Place.Take(ctx, again)
		switch {
		case err == nil, errors.Is(err, ErrNameTaken), errors.Is(err, ErrReplaced):
			return err
		case ctx.Err() == nil:
			failed = err
			p.cfg.OnError(fmt.Errorf("cluster: join as %q: %w", p.member.Name, err))
			pause = pauses.Next(pause)
			backoff.Sleep(ctx, pause)
		}
	}
}
