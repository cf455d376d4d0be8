package redislock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// dead is how long a waiter lives without a sign of life, which it gives at each fallback poll. It is less than
// a TTL less one fallback poll. So the lease of a process that died outlives its waiters, and none of them
// is granted the key when that lease ends.
func (l *Locker) dead() time.Duration { return l.fallbackPoll() * 5 / 2 }

// fallbackPoll is the longest pause of a waiter between two polls.
func (l *Locker) fallbackPoll() time.Duration { return min(time.Second, l.cfg.TTL/4) }

// hand is how long a notified grant lasts without a renewal. The waiter may be
// dead: then it costs that much, and not a whole TTL.
func (l *Locker) hand() time.Duration { return min(3*time.Second, l.cfg.TTL) }

// args are the arguments that the scripts of the queue have in common.
func (l *Locker) args(first string, more ...any) []any {
	args := append(make([]any, 0, 1+len(l.common)+len(more)), first)
	return append(append(args, l.common...), more...)
}

func (l *Locker) fenceTTL() int64 { return max(fenceTTL, 2*l.cfg.TTL).Milliseconds() }

// abandon releases in the background what id may have of key: the key, or a
// place in its queue.
func (l *Locker) abandon(ctx context.Context, key, id string) {
	l.rollback.Add(ctx, dlock.Held{Key: key, Fence: dlock.Fence{Owner: id}})
}

func (l *Locker) revert(ctx context.Context, h dlock.Held) (bool, error) {
	reply, err := l.manage(ctx, "abandon", abandonScript, h.Key, h.Fence.Owner)
	return reply == int64(1), err
}
