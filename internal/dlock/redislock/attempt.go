package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
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
	if l.hub.cluster != nil {
		args = append(args, l.hub.channels(k.lock))
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
	reply, sent, err := l.calls.run(ctx, acquireScript, k.all(), l.args(k, id, l.ttl, stamp)...)
	switch {
	case errors.Is(err, errUnsent):
		return answer{}, dlock.Ended(ctx)
	case err != nil && refused(err):
		return answer{}, fmt.Errorf("redislock: acquire %q: %w", key, inTime(ctx, err))
	case err != nil:
		if stamp == "" {
			l.abandon(ctx, key, id)
		}
		return answer{}, fmt.Errorf("redislock: acquire %q: %w: %w", key, dlock.ErrUncertain, inTime(ctx, err))
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

// refused reports whether err proves that the attempt took nothing: Redis
// answered with an error, or the request never left. The scripts write the lock
// last, so that a script which failed half-way has not taken it.
func refused(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// uncertain reports whether the request that failed with err may be executed, now
// or later.
func uncertain(err error) bool { return !errors.Is(err, errUnsent) && !refused(err) }

// inTime adds the end of ctx to err, and its cause, once err was classified: the client reports the deadline of a
// context as an i/o timeout, and may do so before ctx itself is done.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(dlock.Ended(ctx), err)
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}
