package redisrw

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// granted turns a grant into what the caller gets.
func (a *attempt) granted(ctx context.Context, fence dlock.Fence, sent time.Time, first time.Duration) *dlock.Lease {
	l := a.l
	return dlock.NewLease(ctx, dlock.Grant{
		Key: a.key, Fence: fence, Sent: sent, TTL: l.cfg.TTL, First: first,
		MaxHold: l.cfg.MaxHold, NoReentry: l.cfg.NoReentry,
		Kind: a.kind(), Backend: l.sides.Side(a.write), Renewer: l.renewer,
		Release: func(ctx context.Context) error { return a.release(ctx, fence) }, Ended: a.Ended(ctx),
	})
}

// release releases one grant. Of a large phase that begins with that, it lets
// in all: the scripts do so in parts, to stay short.
func (a *attempt) release(ctx context.Context, fence dlock.Fence) error {
	l := a.l
	reply, err := l.start(ctx, l.calls, releaseScript, a.key, a.id, a.mode(), fence.Token).Ints(2)
	if err != nil { // lost, or refused for now: nobody else releases the grant before its TTL
		a.Abandon(ctx)
		return err
	}
	l.admit(ctx, a.key, reply[1])
	return verdictOf(a.key, fence, reply[0])
}

// admit continues for as long as there is more. If it fails, the polls of the waiters admit the rest.
func (l *RW) admit(ctx context.Context, key string, more int64) {
	for more == 1 {
		next, err := l.start(ctx, l.calls, admitScript, key).Ints(1)
		if err != nil {
			return
		}
		more = next[0]
	}
}

// renew is for the Renewer. It makes one call per key, all in one round trip.
func (l *RW) renew(ctx context.Context, held []dlock.Held) []error {
	places := map[string][]int{} // of each key in held
	for i, h := range held {
		places[h.Key] = append(places[h.Key], i)
	}
	calls := make(map[string]*redisx.Call, len(places))
	for key, all := range places {
		var args []any
		for _, i := range all {
			id, mode := ownerOf(held[i])
			args = append(args, id, mode, held[i].Fence.Token)
		}
		calls[key] = l.start(ctx, l.renewals, renewScript, key, args...)
	}
	errs := make([]error, len(held))
	for key, all := range places {
		verdicts, err := calls[key].Ints(len(all))
		for n, i := range all {
			if errs[i] = err; err == nil {
				errs[i] = verdictOf(key, held[i].Fence, verdicts[n])
			}
		}
	}
	return errs
}

// verdictOf reads what renew.lua and release.lua say of one grant.
func verdictOf(key string, fence dlock.Fence, n int64) error {
	return driver.Verdict(dlock.Held{Key: key, Fence: fence}, n)
}

// kind gives the Renewer the type of a grant: readers share the owner of a fence.
func (a *attempt) kind() string {
	if a.write {
		return ""
	}
	return a.id
}

// ownerOf returns the id and the mode of a grant.
func ownerOf(h dlock.Held) (id, mode string) {
	if h.Kind == "" {
		return h.Fence.Owner, "w"
	}
	return h.Kind, "r"
}
