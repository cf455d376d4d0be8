package redislock

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// renew is what the Renewer calls: one script for the grants of one key, all
// scripts in one round trip.
func (s *Semaphore) renew(ctx context.Context, held []dlock.Held) []error {
	byKey := map[string][]int{}
	for i, h := range held {
		byKey[h.Key] = append(byKey[h.Key], i)
	}
	errs := make([]error, len(held))
	sent := make(map[string]*redis.Cmd, len(byKey))
	args := func(key string) []any {
		var list []any
		for _, i := range byKey[key] {
			list = append(list, held[i].Fence.Owner, held[i].Fence.Token, held[i].Kind)
		}
		return s.args(key, list...)
	}
	pipe := s.rdb.Pipeline()
	for key := range byKey {
		sent[key] = semaphoreRenewScript.EvalSha(ctx, pipe, s.keys(key), args(key)...)
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for key, reply := range sent {
		if err := reply.Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			reply = semaphoreRenewScript.Eval(ctx, s.rdb, s.keys(key), args(key)...)
		}
		live, err := reply.Int64Slice()
		for at, i := range byKey[key] {
			switch {
			case err != nil:
				errs[i] = err
			case live[at] == 0:
				errs[i] = dlock.ErrLost
			}
		}
	}
	return errs
}
