package redislock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// Inspect implements [dlock.Inspector]. Waiters counts those that have died and
// have not been passed over yet, too.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	reply, err := l.manage(ctx, "inspect", inspectScript, key, "")
	if err != nil {
		return dlock.State{}, err
	}
	fields, _ := reply.([]any)
	n, err := redisx.Ints(fields[min(1, len(fields)):], 4)
	if err != nil {
		return dlock.State{}, fmt.Errorf("redislock: inspect %q: %w", key, err)
	}
	owner, held := fields[0].(string)
	state := dlock.State{Key: key, Held: held, Waiters: int(n[3])}
	if !held {
		return state, nil
	}
	state.Fence, state.TTL = dlock.Fence{Owner: owner, Token: uint64(n[0])}, time.Duration(n[1])*time.Millisecond
	if n[2] > 0 {
		state.Since = time.UnixMicro(n[2])
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The fencing token moves on, so that it
// stays in force for resources that have not seen the next holder yet.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	_, err := l.manage(ctx, "force release", forceScript, key, "")
	return err
}

// RaiseCounter makes every later token of key greater than atLeast. It is for a resource that refuses all grants with
// [dlock.ErrFenced], because it has accepted a token that Redis no longer knows. That happens after a loss of data
// while the clock was set back. RaiseCounter never lowers the token, and changes nothing for a present holder, which
// has to acquire again.
func (l *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	if atLeast >= 1<<53-1<<20 {
		return fmt.Errorf("redislock: raise the counter of %q: token %d is beyond what a script can count", key, atLeast)
	}
	_, err := l.manage(ctx, "raise the counter of", raiseCounterScript, key, strconv.FormatUint(atLeast, 10))
	return err
}

// manage runs a script about key, without a lease of it.
func (l *Locker) manage(ctx context.Context, what string, s redisx.Script, key, first string) (any, error) {
	err := redisx.CheckKey(key)
	var reply any
	if err == nil {
		reply, _, err = l.calls.Run(ctx, s, keysOf(l.cfg.Prefix, key).all(), l.args(first)...)
	}
	if err != nil {
		return nil, fmt.Errorf("redislock: %s %q: %w", what, key, driver.InTime(ctx, err))
	}
	return reply, nil
}
