package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// Inspect implements [dlock.Inspector]. Waiters counts those that have died and
// have not been passed over yet, too.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	if err := redisx.CheckKey(key); err != nil {
		return dlock.State{}, err
	}
	reply, err := l.manage(ctx, inspectScript, key, "")
	if err != nil {
		return dlock.State{}, fmt.Errorf("redislock: inspect %q: %w", key, err)
	}
	fields, _ := reply.([]any)
	if len(fields) != 4 {
		return dlock.State{}, fmt.Errorf("redislock: inspect %q: reply %v", key, reply)
	}
	held, _ := fields[0].(string)
	ttl, _ := fields[1].(int64)
	fence, _ := fields[2].(string)
	waiters, _ := fields[3].(int64)
	state := dlock.State{Key: key, Waiters: int(waiters)}
	if held == "" {
		return state, nil
	}
	state.Held, state.TTL = true, time.Duration(max(0, ttl))*time.Millisecond
	at := strings.LastIndexByte(held, ':')
	if at < 0 { // no client has written that
		return state, nil
	}
	state.Fence.Owner = held[:at]
	state.Fence.Token, _ = strconv.ParseUint(held[at+1:], 10, 64)
	if parts := strings.SplitN(fence, ":", 3); len(parts) > 1 && parts[0] == held[at+1:] {
		if since, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			state.Since = time.UnixMicro(since)
		}
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The fencing token moves on, so that it
// stays in force for resources that have not seen the next holder yet.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	if err := redisx.CheckKey(key); err != nil {
		return err
	}
	if _, err := l.manage(ctx, forceScript, key, ""); err != nil {
		return fmt.Errorf("redislock: force release %q: %w", key, err)
	}
	return nil
}

// RaiseCounter makes every later token of key greater than atLeast. It is for a resource that refuses all grants with
// [dlock.ErrFenced], because it has accepted a token that Redis no longer knows. That happens after a loss of data
// while the clock was set back. RaiseCounter never lowers the token, and changes nothing for a present holder, which
// has to acquire again.
func (l *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	if err := redisx.CheckKey(key); err != nil {
		return err
	}
	if atLeast >= 1<<53-1<<20 {
		return fmt.Errorf("redislock: raise the counter of %q: token %d is beyond what a script can count", key, atLeast)
	}
	k := keysOf(l.cfg.Prefix, key)
	_, _, err := l.calls.Run(ctx, raiseCounterScript, []string{k.fence}, strconv.FormatUint(atLeast, 10), l.fenceTTL())
	if err != nil {
		return fmt.Errorf("redislock: raise the counter of %q: %w", key, driver.InTime(ctx, err))
	}
	return nil
}

func (l *Locker) manage(ctx context.Context, s redisx.Script, key, first string) (any, error) {
	k := keysOf(l.cfg.Prefix, key)
	reply, _, err := l.calls.Run(ctx, s, k.all(), l.args(first)...)
	if err != nil {
		return nil, driver.InTime(ctx, err)
	}
	return reply, nil
}
