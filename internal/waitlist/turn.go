package waitlist

import (
	"context"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
)

// turn is one waiter, while it may look and try.
type turn struct {
	cfg   *Config
	key   string
	claim Claim
	vain  int // tries in a row that came to nothing although Look had said otherwise
}

// first is the turn of the waiter that is first in line. It returns whether Try has
// succeeded, or its error; neither means that ctx has ended or the place is lost.
//
// Try gets ctx and not that of the place: units that are being taken are taken, and
// what protects them from others is not the line.
func (t *turn) first(ctx context.Context, line *dlock.Lease) (done bool, err error) {
	defer line.Release(ctx) //nolint:errcheck // What it cannot free is freed by the TTL.
	place, cancel := line.Context(ctx)
	defer cancel()
	for worth := t.look(place); place.Err() == nil; worth = t.round(place) {
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

// round lasts until units are seen, or for Recheck. It reports whether a try is
// worth it.
//
// The look with the lock held comes before the wait, and the wait begins in the
// same step in which the lock is given up. So units that were committed before the
// look are seen by it, and who committed later gets the lock only when there is
// somebody to wake. The look at the end needs no lock, so that whatever holds it
// up, as a process that died with it, costs no more than Recheck.
func (t *turn) round(place context.Context) (worth bool) {
	round, cancel := context.WithTimeout(place, t.cfg.Recheck)
	defer cancel()
	lease, err := t.cfg.Lock.Acquire(round, unitsKey(t.key))
	defer func() {
		if lease != nil { // also when Look panics
			lease.Release(place) //nolint:errcheck // What it cannot free is freed by the TTL.
		}
	}()
	for err == nil {
		if t.look(round) {
			return true
		}
		lease, err = t.cfg.Cond.Wait(round, lease)
	}
	<-round.Done() // it has failed for another reason if this blocks
	return t.look(place)
}

// look reports whether a try is worth it.
func (t *turn) look(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, t.cfg.Recheck)
	defer cancel()
	worth, err := t.claim.Look(short)
	switch {
	case err != nil:
		return true // Try finds out, and has the error for the caller
	case !worth:
		t.vain = 0
	}
	return worth
}

// pause is for a Look and a Try that contradict each other: because others are
// quicker, which the next look sees at once, or for longer, and then it must not
// cost a try after the other.
func (t *turn) pause(ctx context.Context) {
	const shortest = 10 * time.Millisecond
	if t.vain < 2 {
		return
	}
	backoff.Sleep(ctx, min(shortest<<min(t.vain-2, 10), t.cfg.Recheck))
}

// stray is one look, and maybe a try, of a waiter that can have no place in line. It
// takes Recheck in all, unless that ends the wait. hands bounds how many do so at
// the same time: units that come back while the lock service is away must not bring
// everybody to the database at once.
func (t *turn) stray(ctx context.Context, hands chan struct{}) (done bool, err error) {
	begun := time.Now()
	select {
	case hands <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	if done, err = t.once(ctx, hands); done || err != nil {
		return done, err
	}
	all := t.cfg.Recheck*8/10 + rand.N(t.cfg.Recheck*2/10+1)
	backoff.Sleep(ctx, all-time.Since(begun))
	return false, nil
}

func (t *turn) once(ctx context.Context, hands chan struct{}) (done bool, err error) {
	defer func() { <-hands }()
	if !t.look(ctx) || ctx.Err() != nil {
		return false, nil
	}
	return t.claim.Try(ctx)
}
