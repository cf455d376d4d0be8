package redislock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// newUndo returns what gives back the attempts of l whose outcome is unknown.
func (l *Locker) newUndo() *dlock.Undo {
	return dlock.NewUndo(dlock.UndoConfig{
		TTL:      max(l.cfg.TTL, 2*l.dead()),
		Pause:    max(l.cfg.Timeout/4, time.Millisecond),
		Timeout:  2 * l.cfg.Timeout,
		GiveBack: l.giveBack,
	})
}

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
	found = make([]bool, len(held))
	for i, c := range calls {
		n, _, failed := c.wait()
		if failed != nil {
			err = failed
		}
		found[i] = n != int64(0)
	}
	return found, err
}
