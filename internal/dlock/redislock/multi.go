package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// AcquireAll implements [dlock.MultiLocker]. If all keys are free, that is one round trip. Otherwise it releases those
// that it has, and waits for one key after the other, in order. It releases all if one fails.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	keys, err := dlock.Distinct(keys)
	if err != nil {
		return nil, err
	}
	if lease, err := driver.Enter(ctx, l, redisx.CheckKey, keys...); lease != nil || err != nil {
		return lease, err
	}
	lease, err := l.tryEach(ctx, keys)
	if lease != nil && (err != nil || len(lease.Keys()) < len(keys)) {
		_ = lease.Release(ctx) // what Redis does not confirm is rolled back in the background
		lease = nil
	}
	if lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// TryAcquireEach implements [dlock.EachLocker]. It makes one round trip, in a Cluster one to each master concurrently,
// and returns when the last of them has responded. It does not overtake a queue.
func (l *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	keys, err := dlock.Distinct(keys)
	if err != nil {
		return nil, err
	}
	if lease, err := driver.Enter(ctx, l, redisx.CheckKey, keys...); lease != nil || err != nil {
		return lease, err
	}
	return l.tryEach(ctx, keys)
}

// tryEach makes one attempt for each of keys, with an owner of its own. A key with dead waiters in its queue counts as
// held: the attempt has evicted some of them.
func (l *Locker) tryEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	asked := make([]dlock.Held, len(keys))
	for i, key := range keys {
		asked[i] = dlock.Held{Key: key, Fence: dlock.Fence{Owner: l.notifier.NewID()}}
	}
	var held []dlock.Held
	var sent time.Time // of all of them
	var failed []string
	var why error
	for i, r := range l.runAll(ctx, l.calls, acquireScript, asked, owner, l.ttl, "") {
		h, err := asked[i], r.Err
		if err == nil {
			h.Fence.Token, _, err = answer(r.Value)
		}
		switch {
		case err != nil:
			failed = append(failed, h.Key)
			if cause := l.failure(ctx, h, err); why == nil || !strings.Contains(why.Error(), cause.Error()) {
				why = errors.Join(why, cause)
			}
		case h.Fence.Token != 0:
			held, sent = append(held, h), r.Sent
		}
	}
	if why != nil {
		why = fmt.Errorf("redislock: acquire %q: %w", failed, why)
	}
	if len(held) == 0 {
		return nil, why
	}
	return l.lease(ctx, held, sent, 0, nil), why
}

// failure is the error of an attempt that failed with err. It rolls the attempt back if Redis may have executed it.
func (l *Locker) failure(ctx context.Context, h dlock.Held, err error) error {
	switch {
	case errors.Is(err, redisx.ErrUnsent):
		return dlock.Ended(ctx)
	case redisx.Refused(err):
		return driver.InTime(ctx, err)
	}
	l.abandon(ctx, h.Key, h.Fence.Owner)
	return fmt.Errorf("%w: %w", dlock.ErrUncertain, driver.InTime(ctx, err))
}

// runAll makes a call of a script of the queue for each of held, in one round trip.
func (l *Locker) runAll(ctx context.Context, c *redisx.Caller, s redisx.Script, held []dlock.Held, first func(dlock.Held) string, more ...any) []redisx.Reply {
	requests := make([]redisx.Request, len(held))
	for i, h := range held {
		requests[i] = redisx.Request{Keys: keysOf(l.cfg.Prefix, h.Key).all(), Args: l.args(first(h), more...)}
	}
	return c.RunAll(ctx, s, requests)
}

func owner(h dlock.Held) string { return h.Fence.Owner }
