package redislock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// abandon gives back in the background what id may have of key: the key, or a
// place in its queue.
func (l *Locker) abandon(ctx context.Context, key, id string) {
	l.undo.Add(ctx, dlock.Held{Key: key, Fence: dlock.Fence{Owner: id}})
}

func (l *Locker) giveBack(ctx context.Context, held []dlock.Held) (found []bool, err error) {
	calls := make([]*call, len(held))
	for i, h := range held {
		k := keysOf(l.cfg.Prefix, h.Key)
		calls[i] = l.calls.start(ctx, abandonScript, k.all(), l.args(k, h.Fence.Owner)...)
	}
	return foundBy(calls)
}

// foundBy reads the replies of calls that say 1 if there was anything to release.
func foundBy(calls []*call) (found []bool, err error) {
	found = make([]bool, len(calls))
	for i, c := range calls {
		n, _, failed := c.wait()
		if failed != nil {
			err = failed
		}
		found[i] = n == int64(1)
	}
	return found, err
}

// undoOf returns what rolls back the attempts of a client whose outcome is unknown. After
// longest Redis has forgotten them.
func undoOf(longest, timeout time.Duration, giveBack func(ctx context.Context, held []dlock.Held) ([]bool, error)) *driver.Undo {
	return driver.NewUndo(driver.UndoConfig{
		TTL: longest, Pause: max(timeout/4, time.Millisecond), Timeout: 2 * timeout, GiveBack: giveBack,
	})
}
