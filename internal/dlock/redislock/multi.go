package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// AcquireAll implements [dlock.MultiLocker]. If Redis can take all keys in one
// script and all are free, that is one round trip. Otherwise it waits for one key
// after the other, in order, and releases all if one fails. In a cluster one
// script takes keys with the same hash tag only, as "{order-7}:a" and "{order-7}:b".
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(keys) == 0 {
		return nil, errors.New("redislock: no keys")
	}
	if lease, err := driver.Enter(ctx, l, redisx.CheckKey, keys...); lease != nil || err != nil {
		return lease, err
	}
	if len(keys) == 1 {
		return l.Acquire(ctx, keys[0])
	}
	if l.together(keys) {
		if lease, err := l.atOnce(ctx, keys); lease != nil || err != nil {
			return lease, err
		}
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// together reports whether one script can have all keys.
func (l *Locker) together(keys []string) bool {
	if !l.notifier.Cluster() {
		return true
	}
	tag := redisx.HashTag(keysOf(l.cfg.Prefix, keys[0]).lock)
	return !slices.ContainsFunc(keys, func(key string) bool {
		return redisx.HashTag(keysOf(l.cfg.Prefix, key).lock) != tag
	})
}

// atOnce takes all keys if all are free. It returns nil and nil if they are not.
func (l *Locker) atOnce(ctx context.Context, keys []string) (*dlock.Lease, error) {
	held, names := make([]dlock.Held, len(keys)), make([]string, 0, 4*len(keys))
	args := []any{l.cfg.TTL.Milliseconds(), l.fenceTTL()}
	for i, key := range keys {
		held[i] = dlock.Held{Key: key, Fence: dlock.Fence{Owner: l.notifier.NewID()}}
		names, args = append(names, keysOf(l.cfg.Prefix, key).all()...), append(args, held[i].Fence.Owner)
	}
	reply, sent, err := l.calls.Run(ctx, allScript, names, args...)
	switch {
	case errors.Is(err, redisx.ErrUnsent):
		return nil, dlock.Ended(ctx)
	case err != nil && redisx.Refused(err):
		return nil, fmt.Errorf("redislock: acquire %q: %w", keys, driver.InTime(ctx, err))
	case err != nil:
		for _, h := range held {
			l.abandon(ctx, h.Key, h.Fence.Owner)
		}
		return nil, fmt.Errorf("redislock: acquire %q: %w: %w", keys, dlock.ErrUncertain, driver.InTime(ctx, err))
	}
	tokens, _ := reply.([]any)
	if len(tokens) != len(keys) {
		return nil, nil
	}
	for i, token := range tokens {
		text, _ := token.(string)
		if held[i].Fence.Token, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("redislock: acquire %q: reply %v", keys, reply)
		}
	}
	return l.lease(ctx, held, granted{sent: sent}), nil
}
