package redislock

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock"
)

// renew is what the Renewer calls: one script for the grants of one key, all
// scripts in one round trip.
func (s *Semaphore) renew(ctx context.Context, held []dlock.Held) []error {
	byKey := map[string][]int{}
	for i, h := range held {
		byKey[h.Key] = append(byKey[h.Key], i)
	}
	calls := make(map[string]*call, len(byKey))
	for key, group := range byKey {
		var args []any
		for _, i := range group {
			args = append(args, held[i].Fence.Owner, held[i].Fence.Token, held[i].Kind)
		}
		calls[key] = s.renewals.start(ctx, semaphoreRenewScript, s.keys(key), s.args(key, args...)...)
	}
	errs := make([]error, len(held))
	for key, c := range calls {
		reply, _, err := c.wait()
		live, _ := reply.([]any)
		for at, i := range byKey[key] {
			switch {
			case err != nil:
				errs[i] = err
			case at >= len(live):
				errs[i] = fmt.Errorf("redislock: renew: reply %v", reply)
			case live[at] != int64(1):
				errs[i] = dlock.ErrLost
			}
		}
	}
	return errs
}
