package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// lease turns the grants of one or several keys into one lease. g is the oldest one.
func (l *Locker) lease(ctx context.Context, held []dlock.Held, g granted) *dlock.Lease {
	if !l.listens.Load() { // for the notification of a loss
		l.listens.Store(true)
		l.notifier.Listen(ctx)
	}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: held[0].Key, Fence: held[0].Fence, Rest: held[1:],
		Sent: g.sent, First: g.first, TTL: l.cfg.TTL, MaxHold: l.cfg.MaxHold,
		Backend: l, NoReentry: l.cfg.NoReentry, Renewer: l.renewer,
		Release: func(ctx context.Context) error { return l.release(ctx, held) }, Ended: g.ended,
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
	var failed error
	for i, r := range l.runAll(ctx, releaseScript, held, value) {
		err := r.Err
		if err == nil {
			err = driver.Verdict(held[i], r.Value)
		} else { // lost, or refused for now: nobody else releases the lock before its TTL
			l.abandon(ctx, held[i].Key, held[i].Fence.Owner)
		}
		if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// renew is for the Renewer. In a cluster it makes one call per hash tag.
func (l *Locker) renew(ctx context.Context, held []dlock.Held) []error {
	var groups [][]int
	tags := map[string]int{}
	var requests []redisx.Request
	for i, h := range held {
		k, tag := keysOf(l.cfg.Prefix, h.Key), ""
		if l.notifier.Cluster() {
			tag = redisx.HashTag(k.lock)
		}
		at, known := tags[tag]
		if !known {
			at, tags[tag] = len(groups), len(groups)
			groups = append(groups, nil)
			requests = append(requests, redisx.Request{Args: []any{l.cfg.TTL.Milliseconds()}})
		}
		groups[at] = append(groups[at], i)
		r := &requests[at]
		r.Keys, r.Args = append(r.Keys, k.lock, k.fence), append(r.Args, value(h))
	}
	errs := make([]error, len(held))
	for g, r := range l.renewals.RunAll(ctx, renewScript, requests) {
		verdicts, _ := r.Value.([]any)
		for at, i := range groups[g] {
			switch {
			case r.Err != nil:
				errs[i] = r.Err
			case at < len(verdicts):
				errs[i] = driver.Verdict(held[i], verdicts[at])
			default:
				errs[i] = fmt.Errorf("redislock: renew: reply %v", r.Value)
			}
		}
	}
	return errs
}

// value is what Redis holds for a grant.
func value(h dlock.Held) string {
	f := h.Fence
	return f.Owner + ":" + strconv.FormatUint(f.Token, 10)
}
