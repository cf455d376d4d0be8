package waitlist

import (
	"context"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// turn is one waiter while it may poll and try.
type turn struct {
	cfg   *Config
	key   string
	claim Claim
	vain  int // consecutive tries that failed although Poll had found units
}

// first polls and tries while the waiter is first in the queue. It returns whether Try
// succeeded, or its error. False without an error means that ctx has ended or the place is lost.
//
// Try gets ctx, not the context of the place. The loss of the place must not interrupt a try, and the queue does not
// protect the units.
func (t *turn) first(ctx context.Context, queue *dlock.Lease) (done bool, err error) {
	defer queue.Release(ctx) //nolint:errcheck // What it cannot free is freed by the TTL.
	place, cancel := queue.Context(ctx)
	defer cancel()
	for worth := t.poll(place); place.Err() == nil; worth = t.round(place) {
		if !worth {
			continue
		}
		if done, err = t.claim.Try(ctx); done || err != nil {
			return done, err
		}
		t.vain++
		t.pause(place)
	}
	return false, nil
}

// round waits until a poll finds units, or for FallbackPoll. It reports whether a try is
// worthwhile.
//
// The poll with the lock held comes before the wait, and the wait starts in the
// same step that releases the lock. So the poll sees units that were committed
// earlier. A notifier of a later commit gets the lock only when the waiter
// sleeps and can be woken. The last poll needs no lock, so a process that died with
// the lock delays the waiter by at most FallbackPoll.
func (t *turn) round(place context.Context) (worth bool) {
	round, cancel := context.WithTimeout(place, t.cfg.FallbackPoll)
	defer cancel()
	lease, err := t.cfg.Lock.Acquire(round, unitsKey(t.key))
	defer func() {
		if lease != nil { // also when Poll panics
			lease.Release(place) //nolint:errcheck // What it cannot free is freed by the TTL.
		}
	}()
	for err == nil {
		if t.poll(round) {
			return true
		}
		lease, err = t.cfg.Cond.Wait(round, lease)
	}
	<-round.Done() // blocks only if the lock or the condition failed
	return t.poll(place)
}

// poll reports whether a try is worthwhile.
func (t *turn) poll(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, t.cfg.FallbackPoll)
	defer cancel()
	worth, err := t.claim.Poll(short)
	switch {
	case err != nil:
		return true // Try returns the error to the caller
	case !worth:
		t.vain = 0
	}
	return worth
}

// pause delays the next try if Poll and Try contradict each other. Another customer may have been
// quicker, which the next poll sees at once. A lasting contradiction must not become a busy
// loop.
func (t *turn) pause(ctx context.Context) {
	const shortest = 10 * time.Millisecond
	if t.vain < 2 {
		return
	}
	backoff.Sleep(ctx, min(shortest<<min(t.vain-2, 10), t.cfg.FallbackPoll))
}

// stray is one poll, and maybe a try, of a waiter without a place in the queue. It takes FallbackPoll in all, unless it
// ends the wait. slots limits how many waiters do so at the same time. Otherwise, units released while the lock service
// is unavailable would make all waiters query the database at once.
func (t *turn) stray(ctx context.Context, slots chan struct{}) (done bool, err error) {
	start := time.Now()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	if done, err = t.once(ctx, slots); done || err != nil {
		return done, err
	}
	all := t.cfg.FallbackPoll*8/10 + rand.N(t.cfg.FallbackPoll*2/10+1)
	backoff.Sleep(ctx, all-time.Since(start))
	return false, nil
}

func (t *turn) once(ctx context.Context, slots chan struct{}) (done bool, err error) {
	defer func() { <-slots }()
	if !t.poll(ctx) || ctx.Err() != nil {
		return false, nil
	}
	return t.claim.Try(ctx)
}
