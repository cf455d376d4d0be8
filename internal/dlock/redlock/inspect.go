package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/redisx"
)

// Inspect implements [dlock.Inspector]. A key is held if a majority says so. There is no
// queue, so it counts no waiters.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	replies, err := l.majority(ctx, inspectScript, []string{l.lockKey(key)})
	if err != nil {
		return dlock.State{}, fmt.Errorf("redlock: inspect %q: %w", key, err)
	}
	votes := map[string]int{}
	for _, reply := range replies {
		fields, _ := reply.([]any)
		if len(fields) != 2 {
			return dlock.State{}, fmt.Errorf("redlock: inspect %q: reply %v", key, reply)
		}
		held, _ := fields[0].(string)
		ttl, _ := fields[1].(int64)
		at := max(0, strings.LastIndexByte(held, ':')) // of what no client has written there may be none
		if held == "" {
			continue
		}
		votes[held[:at]]++
		if votes[held[:at]] < l.quorum {
			continue
		}
		owner, token, _ := strings.Cut(held[:at], ":")
		state := dlock.State{Key: key, Held: true, Fence: dlock.Fence{Owner: owner}, TTL: time.Duration(max(0, ttl)) * time.Millisecond}
		state.Fence.Token, _ = strconv.ParseUint(token, 10, 64)
		if since, err := strconv.ParseInt(held[at+1:], 10, 64); err == nil {
			state.Since = time.UnixMicro(since)
		}
		return state, nil
	}
	return dlock.State{Key: key}, nil
}

// ForceRelease implements [dlock.ForceReleaser], on a majority at least. The fencing token moves
// on, so that it stays in force for resources that have not seen the next holder yet.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	if _, err := l.majority(ctx, forceScript, []string{l.lockKey(key), l.fenceKey(key)}, l.fenceTTL()); err != nil {
		return fmt.Errorf("redlock: force release %q: %w", key, err)
	}
	return nil
}

// RaiseCounter implements [dlock.CounterRaiser]. It raises a majority of the servers, which every later majority
// overlaps. It is for a resource that refuses all grants, because it has accepted a token that no majority knows any
// more. That happens after a loss of data while clocks were set back.
func (l *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	if atLeast >= 1<<53-1<<20 {
		return fmt.Errorf("redlock: raise the counter of %q: token %d is beyond what a script can count", key, atLeast)
	}
	if _, err := l.majority(ctx, raiseCounterScript, []string{l.fenceKey(key)}, atLeast, l.fenceTTL()); err != nil {
		return fmt.Errorf("redlock: raise the counter of %q: %w", key, err)
	}
	return nil
}

// majority runs a script on all servers, and returns the replies when a majority has
// answered and the others have, too, or are late.
func (l *Locker) majority(ctx context.Context, s redisx.Script, keys []string, args ...any) ([]any, error) {
	sending, decided := context.WithCancel(context.WithoutCancel(ctx))
	defer decided()
	answers := ask(l, func(n *node) (any, error) { return n.call(sending, s, keys, args...) })
	var (
		replies []any
		errs    []error
	)
	late := time.After(l.cfg.Timeout)
	for range l.nodes {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			replies = append(replies, a.value)
		case <-late:
			errs = append(errs, errSilent)
		case <-ctx.Done():
			return nil, dlock.Ended(ctx)
		}
	}
	if len(replies) < l.quorum {
		return nil, fmt.Errorf("%d of %d servers answered: %w", len(replies), len(l.nodes), errors.Join(errs...))
	}
	return replies, nil
}
