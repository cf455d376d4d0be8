package redissem

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/redisx"
)

// renew is what the Renewer calls: one script for the grants of one key, all
// scripts in one round trip.
func (s *Semaphore) renew(ctx context.Context, held []dlock.Held) []error {
	byKey := map[string][]int{}
	for i, h := range held {
		byKey[h.Key] = append(byKey[h.Key], i)
	}
	var requests []redisx.Request
	var groups [][]int
	for key, group := range byKey {
		var args []any
		for _, i := range group {
			args = append(args, held[i].Fence.Owner, held[i].Fence.Token, held[i].Kind)
		}
		requests = append(requests, redisx.Request{Keys: s.keys(key), Args: s.args(args...)})
		groups = append(groups, group)
	}
	errs := make([]error, len(held))
	for g, r := range s.renewals.RunAll(ctx, renewScript, requests) {
		live, err := redisx.Ints(r.Value, len(groups[g]))
		for at, i := range groups[g] {
			if errs[i] = cmp.Or(r.Err, err); errs[i] == nil && live[at] != 1 {
				errs[i] = dlock.ErrLost
			}
		}
	}
	return errs
}

// granted turns a grant into what the caller gets.
func (a *attempt) granted(ctx context.Context, token string, sent time.Time, first time.Duration) *dlock.Lease {
	n, _ := strconv.ParseUint(token, 10, 64) // made by digits in the script
	s, fence := a.s, dlock.Fence{Token: n, Owner: a.owner}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: a.key, Fence: fence, Kind: strconv.Itoa(a.n),
		Sent: sent, First: first, TTL: s.ttl, MaxHold: s.maxHold, Renewer: s.renewer,
		Release: func(ctx context.Context) error {
			live, _, err := s.run(ctx, releaseScript, a.key, fence.Owner, fence.Token, a.n)
			switch {
			case err != nil: // lost, or refused for now: nobody else releases them before the TTL
				a.Abandon(ctx)
			case live == int64(0):
				return dlock.ErrLost
			}
			return err
		},
		Ended: a.Ended(ctx),
	})
}
