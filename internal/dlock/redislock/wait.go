package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/rediswait"
)

// acquisition is one call of Acquire or TryAcquire. Its owner is new, so that asking again is
// harmless.
//
// Requests repeat every second, so a STAMP is at most about that old. A notified grant lasts 3 s, or the TTL if that is
// shorter. If more than half of that has passed when the notification arrives, the waiter sends acquire.lua, which
// grants the whole TTL from then.
type acquisition struct {
	rediswait.Waiter

	l       *Locker
	key, id string
	keys    keySet
}

func (l *Locker) newAcquisition(key, id string) *acquisition {
	a := &acquisition{l: l, key: key, keys: keysOf(l.cfg.Prefix, key), id: id}
	a.Waiter = rediswait.Waiter{
		Attempt: a, Poll: l.fallbackPoll(), TTL: l.cfg.TTL, Timeout: l.cfg.Timeout,
		Held: dlock.Held{Key: key, Fence: dlock.Fence{Owner: id}}, Rollback: l.rollback,
	}
	return a
}

// named adds the key to an error.
func (a *acquisition) named(lease *dlock.Lease, err error) (*dlock.Lease, error) {
	if err != nil {
		return nil, fmt.Errorf("redislock: acquire %q: %w", a.key, err)
	}
	return lease, nil
}

// Ask implements [rediswait.Attempt]: it runs acquire.lua.
func (a *acquisition) Ask(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	return a.ask(ctx, func(stamp string) (any, time.Time, error) {
		if a.Pushes == nil {
			stamp = ""
		}
		return a.l.calls.Run(ctx, acquireScript, a.keys.all(), a.l.args(a.id, a.l.ttl, stamp)...)
	})
}

// ask runs a script until it need not be run again at once.
func (a *acquisition) ask(ctx context.Context, run func(stamp string) (any, time.Time, error)) (*dlock.Lease, time.Duration, error) {
	for {
		reply, sent, err := run(a.l.notifier.Stamp(time.Now()))
		if err != nil {
			return nil, 0, err
		}
		switch token, left, err := answer(reply); {
		case err != nil:
			return nil, 0, err
		case token != 0:
			return a.granted(ctx, token, sent, 0), 0, nil
		case left != askAgain:
			return nil, left, nil
		}
	}
}

// askAgain says that acquire.lua has to be run again at once.
const askAgain = -time.Millisecond

// answer reads a reply of acquire.lua: the token of a grant, or askAgain, or how long the lease of the holder lasts
// without a renewal.
func answer(reply any) (token uint64, left time.Duration, err error) {
	switch r := reply.(type) {
	case int64:
		return 0, time.Duration(r) * time.Millisecond, nil
	case string:
		if token, err := strconv.ParseUint(r, 10, 64); err == nil && token > 0 {
			return token, 0, nil
		}
	}
	return 0, 0, fmt.Errorf("reply %v", reply)
}

// Notified implements [rediswait.Attempt]: it reads TOKEN STAMP.
func (a *acquisition) Notified(ctx context.Context, message string) (*dlock.Lease, error) {
	text, stamp, _ := strings.Cut(message, " ")
	token, err := strconv.ParseUint(text, 10, 64)
	sent, ok := a.l.notifier.Sent(stamp)
	if err != nil || !ok || time.Since(sent) > a.l.hand()/2 {
		return nil, nil //nolint:nilnil,nilerr // Neither: then it asks, which begins a new window.
	}
	return a.granted(ctx, token, sent, a.l.hand()), nil
}

// granted turns a grant into what the caller gets.
func (a *acquisition) granted(ctx context.Context, token uint64, sent time.Time, first time.Duration) *dlock.Lease {
	held := a.Held
	held.Fence.Token = token
	return a.l.lease(ctx, []dlock.Held{held}, sent, first, a.Ended(ctx))
}
