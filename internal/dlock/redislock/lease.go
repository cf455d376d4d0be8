package redislock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// lease turns the grants of one or several keys into one lease. The oldest was sent at sent. Redis keeps a notified one for
// first, and others for the TTL.
func (l *Locker) lease(ctx context.Context, held []dlock.Held, sent time.Time, first time.Duration, ended func(error)) *dlock.Lease {
	l.notifier.Listen(ctx) // for the notification of a loss
	return dlock.NewLease(ctx, dlock.Grant{
		Key: held[0].Key, Fence: held[0].Fence, Rest: held[1:],
		Sent: sent, First: first, TTL: l.cfg.TTL, MaxHold: l.cfg.MaxHold,
		Backend: l, Renewer: l.renewer,
		Release: func(ctx context.Context) error { return l.release(ctx, held) }, Ended: ended,
	})
}

// receive handles notifications that are for no wait: a holder was force-released. It ignores grants for waiters that
// have left, because these release them.
func (l *Locker) receive(id, payload string) {
	if payload == "forced" {
		l.renewer.Lose(id, &dlock.LostError{Reason: dlock.Forced})
	}
}

// release releases all of held, in one round trip.
func (l *Locker) release(ctx context.Context, held []dlock.Held) error {
	errs := make([]error, len(held))
	for i, r := range l.runAll(ctx, l.calls, releaseScript, held, value) {
		if errs[i] = verdict(held[i], r); r.Err != nil { // lost, or refused for now: nothing else releases the lock before its TTL
			l.abandon(ctx, held[i].Key, held[i].Fence.Owner)
		}
	}
	return errors.Join(errs...)
}

// renew is for the Renewer.
func (l *Locker) renew(ctx context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	for i, r := range l.runAll(ctx, l.renewals, renewScript, held, value, l.ttl) {
		errs[i] = verdict(held[i], r)
	}
	return errs
}

// verdict makes the reply about h an error.
func verdict(h dlock.Held, r redisx.Reply) error {
	if r.Err != nil {
		return r.Err
	}
	return driver.Verdict(h, r.Value)
}

// value is what Redis holds for a grant.
func value(h dlock.Held) string {
	f := h.Fence
	return f.Owner + ":" + strconv.FormatUint(f.Token, 10)
}
