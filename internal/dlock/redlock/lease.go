package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// lease turns an acquisition that was won into what the caller gets.
func (l *Locker) lease(ctx context.Context, b *acquisition, sent time.Time) *dlock.Lease {
	held := b.held()
	return dlock.NewLease(ctx, dlock.Grant{
		Key: held.Key, Fence: held.Fence, Sent: sent, TTL: l.cfg.TTL, MaxHold: l.cfg.MaxHold,
		Backend: l, Renewer: l.renewer,
		Release: func(ctx context.Context) error { return l.release(ctx, b) },
		Ended: func(outcome error) {
			if errors.Is(outcome, dlock.ErrLost) {
				b.lose(ctx)
			}
		},
	})
}

// tally is what the servers say of one grant.
type tally struct {
	held, gone int
	reason     dlock.Reason
}

func (t *tally) add(verdict int64) {
	if verdict == driver.Done {
		t.held++
		return
	}
	t.gone++
	switch {
	case verdict == driver.Forced:
		t.reason = dlock.Forced
	case verdict == driver.Taken && t.reason != dlock.Forced:
		t.reason = dlock.Taken
	}
}

// verdict says whether a majority still has the grant of held. It is decided when that
// is certain either way.
func (l *Locker) verdict(t tally, held dlock.Held) (decided bool, err error) {
	switch {
	case t.held >= l.quorum:
		return true, nil
	case t.gone > len(l.nodes)-l.quorum:
		lost := &dlock.LostError{Key: held.Key, Fence: held.Fence, Reason: t.reason}
		if t.reason == "" {
			lost.Reason = dlock.Expired
		}
		return true, lost
	}
	return false, nil
}

// release releases a grant. It returns when a majority has answered.
func (l *Locker) release(ctx context.Context, b *acquisition) error {
	sending, decided := context.WithCancel(context.WithoutCancel(ctx))
	defer decided()
	asked, answers, votes := b.end(sending)
	c := count(votes)
	t := tally{gone: c[denied] + c[unsent]}
	var errs []error
	for {
		if decided, err := l.verdict(t, b.held()); decided {
			return err
		}
		if asked == 0 {
			return fmt.Errorf("redlock: %d of %d servers answered: %w", t.held+t.gone, len(votes), errors.Join(errs...))
		}
		select {
		case a := <-answers:
			if asked--; a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			t.add(a.value)
		case <-ctx.Done():
			return dlock.Ended(ctx)
		}
	}
}

// renew is for the Renewer: one call to each server for all of held. It returns when a
// majority has answered.
func (l *Locker) renew(ctx context.Context, held []dlock.Held) []error {
	sending, decided := context.WithCancel(context.WithoutCancel(ctx))
	defer decided()
	keys, args := l.pairs(held)
	answers := ask(l, func(n *node) ([]int64, error) {
		return n.verdicts(sending, renewScript, len(held), keys, args)
	})
	tallies, errs := make([]tally, len(held)), make([]error, len(held))
	var failed []error
	for range l.nodes {
		select {
		case a := <-answers:
			if a.err != nil {
				failed = append(failed, a.err)
			}
			for i, verdict := range a.value {
				tallies[i].add(verdict)
			}
		case <-ctx.Done():
			failed = append(failed, dlock.Ended(ctx))
		}
		open := 0
		for i, t := range tallies {
			decided, err := l.verdict(t, held[i])
			if errs[i] = err; !decided {
				errs[i] = fmt.Errorf("redlock: renew %q: %d of %d servers answered: %w", held[i].Key, t.held+t.gone, len(l.nodes), errors.Join(failed...))
				open++
			}
		}
		if open == 0 || ctx.Err() != nil {
			break
		}
	}
	return errs
}
