package redisrw

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// Inspect implements [dlock.Inspector]. Of readers it reports the fencing token that they share and how long the last
// of them is kept. It does not report since when, because they come and go. Waiters also counts dead waiters that
// have not been passed over yet.
func (l *RW) Inspect(ctx context.Context, key string) (dlock.State, error) {
	if err := redisx.CheckKey(key); err != nil {
		return dlock.State{}, err
	}
	reply, _, err := l.start(ctx, l.calls, inspectScript, key).Wait()
	if err != nil {
		return dlock.State{}, fmt.Errorf("redisrw: inspect %q: %w", key, driver.InTime(ctx, err))
	}
	fields, _ := reply.([]any)
	if len(fields) != 6 {
		return dlock.State{}, fmt.Errorf("redisrw: inspect %q: reply %v", key, reply)
	}
	waiters, _ := fields[2].(int64)
	state := dlock.State{Key: key, Waiters: int(waiters)}
	if fields[0] != int64(1) {
		return state, nil
	}
	left, _ := fields[1].(int64)
	text := redisx.Strings(fields[3:])
	state.Held, state.TTL = true, time.Duration(left)*time.Millisecond
	state.Fence, _ = fenceOf(text[0], text[1])
	if since, err := strconv.ParseInt(text[2], 10, 64); err == nil {
		state.Since = time.UnixMicro(since)
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]: it takes key from its writer, or from all of its readers. Their next
// renewal reports the loss.
func (l *RW) ForceRelease(ctx context.Context, key string) error {
	if err := redisx.CheckKey(key); err != nil {
		return err
	}
	more, err := l.start(ctx, l.calls, forceScript, key, l.notifier.NewID()).Ints(1)
	if err != nil {
		return fmt.Errorf("redisrw: force release %q: %w", key, driver.InTime(ctx, err))
	}
	l.admit(ctx, key, more[0])
	return nil
}
