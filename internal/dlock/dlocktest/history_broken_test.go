package dlocktest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

// TestHistoryOfBrokenLocks records locks that are broken in one way each. The
// check of each must fail.
func TestHistoryOfBrokenLocks(t *testing.T) {
	for name, breakIt := range map[string]func(*memlock.Locker) dlock.Locker{
		"always grants":           func(l *memlock.Locker) dlock.Locker { return &broken{Locker: l, steals: 1} },
		"sometimes grants to two": func(l *memlock.Locker) dlock.Locker { return &broken{Locker: l, steals: 9} },
		"repeats its tokens":      func(l *memlock.Locker) dlock.Locker { return &broken{Locker: l, stutters: true} },
		"refuses when it is free": func(l *memlock.Locker) dlock.Locker { return &broken{Locker: l, refuses: 9} },
		"says it was lost":        func(l *memlock.Locker) dlock.Locker { return &broken{Locker: l, invents: 9} },
	} {
		t.Run(name, func(t *testing.T) {
			h := dlocktest.NewHistory()
			synctest.Test(t, func(t *testing.T) {
				l := breakIt(memlock.New(memlock.Config{TTL: time.Minute}))
				load := dlocktest.Load{Keys: []string{"k", "l"}, Rounds: 100, Patience: time.Hour, Seed: dlocktest.Seed(t)}
				load.Run(t.Context(), clients(3, func() *dlocktest.HistoryClient { return h.Locker(l) })...)
			})
			if got := porcupine.CheckOperationsTimeout(dlocktest.LockModel(), h.Operations(), time.Minute); got != porcupine.Illegal {
				t.Errorf("the check says %v", got)
			}
		})
	}
}

// broken is a lock with mistakes. A number says that every so many calls are wrong.
type broken struct {
	*memlock.Locker

	steals, refuses, invents int64
	stutters                 bool
	calls                    atomic.Int64
}

// Acquire implements [dlock.Locker].
func (l *broken) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if l.now(l.steals) {
		l.Expire(key)
	}
	return l.spoil(l.Locker.Acquire(ctx, key))
}

// TryAcquire implements [dlock.Locker].
func (l *broken) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if l.now(l.refuses) {
		return nil, dlock.ErrHeld
	}
	if l.now(l.steals) {
		l.Expire(key)
	}
	return l.spoil(l.Locker.TryAcquire(ctx, key))
}

func (l *broken) now(every int64) bool { return every > 0 && l.calls.Add(1)%every == 0 }

// spoil hands on a lease in a disguise.
func (l *broken) spoil(lease *dlock.Lease, err error) (*dlock.Lease, error) {
	if err != nil {
		return nil, err
	}
	fence := lease.Fence()
	if l.stutters {
		fence.Token = 1
	}
	return dlock.NewLease(context.Background(), dlock.Grant{
		Key: lease.Key(), Fence: fence,
		Release: func(ctx context.Context) error {
			err := lease.Release(ctx)
			if l.now(l.invents) {
				return dlock.ErrLost
			}
			return err
		},
	}), nil
}
