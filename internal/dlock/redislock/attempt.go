package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// answer is the outcome of acquire.lua.
type answer struct {
	token uint64        // of the grant; 0 if there is none
	sent  time.Time     // when the attempt was sent
	ttl   time.Duration // how long the holder has at most, if it does not renew
	again bool          // ask again at once
}

// granted is one grant of one key.
type granted struct {
	fence dlock.Fence
	sent  time.Time
	first time.Duration // of a pushed grant; 0 means the TTL

	// ended, if there is one, is called when the grant is over.
	ended func(error)
}

func (a answer) grant(id string) granted {
	return granted{fence: dlock.Fence{Token: a.token, Owner: id}, sent: a.sent}
}

// dead is how long a waiter lives without a sign of life, which it gives at each re-check. It is less than
// a TTL less one re-check. So the lease of a process that died outlives its waiters, and none of them
// is granted the key when that lease ends.
func (l *Locker) dead() time.Duration { return l.recheck() * 5 / 2 }

// recheck is the longest pause of a waiter between two looks.
func (l *Locker) recheck() time.Duration { return min(time.Second, l.cfg.TTL/4) }

// hand is how long a pushed grant lasts without a renewal. The waiter may be
// dead: then it costs that much, and not a whole TTL.
func (l *Locker) hand() time.Duration { return min(3*time.Second, l.cfg.TTL) }

// args are the arguments that the scripts of the queue have in common.
func (l *Locker) args(k keySet, first string, more ...any) []any {
	args := make([]any, 0, 6+len(more))
	args = append(args, first)
	args = append(args, l.common...)
	if l.hub.Cluster() {
		args = append(args, l.hub.Channels(k.lock))
	}
	return append(args, more...)
}

func (l *Locker) fenceTTL() int64 { return max(fenceTTL, 2*l.cfg.TTL).Milliseconds() }

// attempt runs acquire.lua once, for a waiter if there is a stamp. After
// ErrUncertain it may have taken the key; after any other error it had no
// effect. What a waiter may have taken is the waiter's to give back, once it
// asks no more: an abandon behind the back of one that still asks would free a
// grant that a later attempt has found. Otherwise it is given back here, in the
// background.
func (l *Locker) attempt(ctx context.Context, key, id, stamp string) (answer, error) {
	k := keysOf(l.cfg.Prefix, key)
	reply, sent, err := l.calls.Run(ctx, acquireScript, k.all(), l.args(k, id, l.ttl, stamp)...)
	switch {
	case errors.Is(err, redisx.ErrUnsent):
		return answer{}, dlock.Ended(ctx)
	case err != nil && redisx.Refused(err):
		return answer{}, fmt.Errorf("redislock: acquire %q: %w", key, driver.InTime(ctx, err))
	case err != nil:
		if stamp == "" {
			l.abandon(ctx, key, id)
		}
		return answer{}, fmt.Errorf("redislock: acquire %q: %w: %w", key, dlock.ErrUncertain, driver.InTime(ctx, err))
	}
	a := answer{sent: sent}
	switch r := reply.(type) {
	case int64:
		a.ttl, a.again = time.Duration(r)*time.Millisecond, r == -1
		return a, nil
	case string:
		if a.token, err = strconv.ParseUint(r, 10, 64); err == nil && a.token > 0 {
			return a, nil
		}
	}
	return answer{}, fmt.Errorf("redislock: acquire %q: reply %v", key, reply)
}

// abandon gives back in the background what id may have of key: the key, or a
// place in its queue.
func (l *Locker) abandon(ctx context.Context, key, id string) {
	l.undo.Add(ctx, dlock.Held{Key: key, Fence: dlock.Fence{Owner: id}})
}

func (l *Locker) giveBack(ctx context.Context, held []dlock.Held) (found []bool, err error) {
	calls := make([]*redisx.Call, len(held))
	for i, h := range held {
		k := keysOf(l.cfg.Prefix, h.Key)
		calls[i] = l.calls.Start(ctx, abandonScript, k.all(), l.args(k, h.Fence.Owner)...)
	}
	return redisx.Found(calls)
}
