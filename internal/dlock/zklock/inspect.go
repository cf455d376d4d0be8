package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// inspect reports the holder, and how many wait. The caller passes the function that makes the holder's fencing token.
func (q *queue) inspect(ctx context.Context, c claim, fence func(p place, zxid uint64) (dlock.Fence, error)) (dlock.State, error) {
	for {
		holders, waiters, err := q.holders(ctx, c)
		if err != nil {
			return dlock.State{}, fmt.Errorf("zklock: inspect %q: %w", c.key, err)
		}
		state := dlock.State{Key: c.key, Waiters: waiters}
		if len(holders) == 0 {
			return state, nil
		}
		_, stat, err := q.s.Get(ctx, c.dir+"/"+holders[0].name)
		if err == nil {
			state.Fence, err = fence(holders[0], uint64(stat.Czxid))
		}
		if errors.Is(err, zk.ErrNoNode) { // it has just released
			continue
		}
		if err != nil {
			return dlock.State{}, fmt.Errorf("zklock: inspect %q: %w", c.key, err)
		}
		state.Held, state.TTL = true, q.s.Timeout()
		state.Since = time.UnixMilli(stat.Ctime)
		return state, nil
	}
}

// force has the nodes of the holders deleted by evict.
func (q *queue) force(ctx context.Context, c claim, evict func(p place, path string) error) error {
	holders, _, err := q.holders(ctx, c)
	for _, p := range holders {
		if e := evict(p, c.dir+"/"+p.name); e != nil && !errors.Is(e, zk.ErrNoNode) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("zklock: force release %q: %w", c.key, err)
	}
	return nil
}

// holders returns the nodes that wait for no other node, and the number of the waiting ones.
func (q *queue) holders(ctx context.Context, c claim) ([]place, int, error) {
	if err := driver.CheckKey(c.key); err != nil {
		return nil, 0, err
	}
	if err := q.s.Sync(ctx); err != nil {
		return nil, 0, err
	}
	names, _, err := q.s.Children(ctx, c.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, 0, nil
	}
	places := sorted(names)
	n := min(1, len(places))
	for n > 0 && n < len(places) && !places[n].kind.conflicts(places[0].kind) && !places[n].kind.conflicts(places[n-1].kind) {
		n++
	}
	return places[:n], len(places) - n, err
}

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	return l.queue.inspect(ctx, claim{key: key, dir: l.dir(key)}, func(p place, zxid uint64) (dlock.Fence, error) {
		return dlock.Fence{Token: zxid, Owner: p.id}, nil
	})
}

// ForceRelease implements [dlock.ForceReleaser]. An operator who deletes the node of a holder by other means does the
// same.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	return l.queue.force(ctx, claim{key: key, dir: l.dir(key)}, func(_ place, path string) error {
		return l.queue.s.Delete(ctx, path, -1)
	})
}
