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
	var errs []error
	for i, c := range l.startAll(ctx, releaseScript, held, value) {
		reply, _, err := c.Wait()
		if err == nil {
			err = driver.Verdict(held[i], reply)
		} else { // lost, or refused for now: nobody else releases the lock before its TTL
			l.abandon(ctx, held[i].Key, held[i].Fence.Owner)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// renew is for the Renewer. In a cluster it makes one call per hash tag.
func (l *Locker) renew(ctx context.Context, held []dlock.Held) []error {
	groups := map[string][]int{}
	for i, h := range held {
		tag := ""
		if l.notifier.Cluster() {
			tag = redisx.HashTag(keysOf(l.cfg.Prefix, h.Key).lock)
		}
		groups[tag] = append(groups[tag], i)
	}
	calls := make(map[string]*redisx.Call, len(groups))
	for tag, group := range groups {
		keys, args := make([]string, 0, 2*len(group)), []any{l.cfg.TTL.Milliseconds()}
		for _, i := range group {
			k := keysOf(l.cfg.Prefix, held[i].Key)
			keys, args = append(keys, k.lock, k.fence), append(args, value(held[i]))
		}
		calls[tag] = l.renewals.Start(ctx, renewScript, keys, args...)
	}
	errs := make([]error, len(held))
	for tag, c := range calls {
		reply, _, err := c.Wait()
		verdicts, _ := reply.([]any)
		for at, i := range groups[tag] {
			switch {
			case err != nil:
				errs[i] = err
			case at < len(verdicts):
				errs[i] = driver.Verdict(held[i], verdicts[at])
			default:
				errs[i] = fmt.Errorf("redislock: renew: reply %v", reply)
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
