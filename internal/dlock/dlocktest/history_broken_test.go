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
	for name, c := range map[string]struct {
		wrong  *broken
		fences bool // the order of the fencing tokens alone shows it
	}{
		"always grants":           {&broken{steals: 1}, false},
		"sometimes grants to two": {&broken{steals: 9}, false},
		"repeats its tokens":      {&broken{stutters: 1}, true},
		"has low tokens at times": {&broken{stutters: 9}, true},
		"refuses when it is free": {&broken{refuses: 3}, false},
		"says it was lost":        {&broken{invents: 9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := dlocktest.NewHistory()
			synctest.Test(t, func(t *testing.T) {
				l := c.wrong
				l.Locker = memlock.New(memlock.Config{TTL: time.Minute})
				load := dlocktest.Load{Keys: []string{"k", "l"}, Rounds: 100, MaxWait: time.Hour, Seed: dlocktest.Seed(t)}
				load.Run(t.Context(), clients(3, func() *dlocktest.HistoryClient { return h.Locker(l) })...)
			})
			if got := porcupine.CheckOperationsTimeout(dlocktest.LockModel(), h.Operations(), time.Minute); got != porcupine.Illegal {
				t.Errorf("the check says %v", got)
			}
			found := &complaints{TB: t}
			if h.CheckFences(found); (found.n > 0) != c.fences {
				t.Errorf("the check of the fences has %d complaints", found.n)
			}
		})
	}
}

// complaints is a test that counts its failures.
type complaints struct {
	testing.TB

	n int
}

// Errorf implements [testing.TB].
func (c *complaints) Errorf(string, ...any) { c.n++ }

// broken is a lock with mistakes. A number says that every so many calls are wrong.
type broken struct {
	*memlock.Locker

	steals, refuses, invents, stutters int64

	calls atomic.Int64
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
	if l.now(l.stutters) {
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
