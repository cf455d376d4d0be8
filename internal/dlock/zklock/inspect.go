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

// places returns the nodes in the queue of key, the holder first.
func (l *Locker) places(ctx context.Context, key string) ([]place, error) {
	if err := driver.CheckKey(key); err != nil {
		return nil, err
	}
	if err := l.queue.s.Sync(ctx); err != nil {
		return nil, err
	}
	names, _, err := l.queue.s.Children(ctx, l.dir(key))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return sorted(names), nil
}

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	for {
		places, err := l.places(ctx, key)
		if err == nil && len(places) == 0 {
			return dlock.State{Key: key}, nil
		}
		var stat *zk.Stat
		if err == nil {
			_, stat, err = l.queue.s.Get(ctx, l.dir(key)+"/"+places[0].name)
		}
		switch {
		case err == nil:
			return dlock.State{
				Key: key, Held: true, Fence: dlock.Fence{Token: uint64(stat.Czxid), Owner: places[0].id},
				Since: time.UnixMilli(stat.Ctime), TTL: l.queue.s.Timeout(), Waiters: len(places) - 1,
			}, nil
		case !errors.Is(err, zk.ErrNoNode): // otherwise it has just released
			return dlock.State{}, fmt.Errorf("zklock: inspect %q: %w", key, err)
		}
	}
}

// ForceRelease implements [dlock.ForceReleaser]. An operator who deletes the node of a holder by other means does the
// same.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	places, err := l.places(ctx, key)
	if err == nil && len(places) > 0 {
		err = l.queue.s.Delete(ctx, l.dir(key)+"/"+places[0].name, -1)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("zklock: force release %q: %w", key, err)
	}
	return nil
}
