// Package rediswait waits in a queue that Redis keeps: for a lock, permits, a share of a key, or a key after a
// signal.
//
// A grant arrives as the response to a request or as a notification. Requests are repeated, because a notification
// can be lost, and because Redis removes a waiter that sends nothing. Every request has the same owner, so it finds
// the grant of an earlier request.
package rediswait

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// Attempt is one acquisition by one owner, as a primitive sends it to Redis.
type Attempt interface {
	// Ask makes one request. It returns a lease, or the error of a script, as it is. If it returns neither, somebody
	// else holds the key, and a waiter has its place in the queue. Then left is how long the holder keeps the key
	// without a renewal, or 0 if that is unknown. [dlock.ErrInvalidPermits] says that it never will be granted.
	Ask(ctx context.Context) (lease *dlock.Lease, left time.Duration, err error)

	// Notified reads a notification. It returns neither to ask again, if a notification may have been missed, or if a
	// grant arrives when little of it is left.
	Notified(ctx context.Context, message string) (*dlock.Lease, error)
}

// Waiter makes an Attempt until that has an outcome. Its fields are set before it is used.
type Waiter struct {
	Attempt Attempt

	Poll    time.Duration // the longest pause between two requests
	TTL     time.Duration // how long Wait continues without an answer to any request
	Timeout time.Duration // of a request; giving up waits for a quarter of it

	Held     dlock.Held       // the key and the owner
	Rollback *driver.Rollback // releases what the owner has in Redis
	// Signaled says that the owner may have had a signal. If Redis does not know the owner, nobody has passed that on.
	Signaled bool

	Pushes <-chan string // notifications, for Wait
	Queued time.Time     // when Redis last confirmed the place in the queue; zero if never

	uncertain bool
}

// Ended is that of the grant, see [dlock.Grant]. It is nil unless a request was sent and not answered. That may arrive when
// the grant is over, and take the key for nobody.
func (w *Waiter) Ended(ctx context.Context) func(outcome error) {
	if !w.uncertain {
		return nil
	}
	return func(error) { w.Abandon(ctx) }
}

// Abandon releases in the background what the owner has in Redis, until it is known that nothing is left.
func (w *Waiter) Abandon(ctx context.Context) { w.Rollback.Add(ctx, w.Held) }

// Try makes one request. It returns [dlock.ErrHeld] if nothing was granted.
func (w *Waiter) Try(ctx context.Context) (*dlock.Lease, error) {
	lease, _, err := w.ask(ctx)
	switch {
	case errors.Is(err, dlock.ErrInvalidPermits):
		return nil, err
	case err != nil:
		return nil, w.giveUp(ctx, err)
	case lease == nil:
		return nil, dlock.ErrHeld
	}
	return lease, nil
}

// Wait asks until something is granted, ctx ends, or Redis has not answered for a TTL. Until then a failed request
// costs a waiter nothing. If it is Queued it first waits for a notification.
func (w *Waiter) Wait(ctx context.Context) (*dlock.Lease, error) {
	left := time.Duration(0) // how long the holder has the key if it does not renew; 0 if that is not known
	for first := w.Queued.IsZero(); ; first = false {
		if !first {
			select {
			case message := <-w.Pushes:
				if lease, err := w.Attempt.Notified(ctx, message); lease != nil || err != nil {
					return lease, err
				}
			case <-time.After(w.pause(left)):
			case <-ctx.Done():
				return nil, w.giveUp(ctx, nil)
			}
		}
		sent := time.Now()
		var lease *dlock.Lease
		var err error
		lease, left, err = w.ask(ctx)
		switch {
		case lease != nil, errors.Is(err, dlock.ErrInvalidPermits):
			return lease, err
		case err == nil:
			w.Queued = sent
		case first || ctx.Err() != nil || time.Since(w.Queued) > w.TTL:
			return nil, w.giveUp(ctx, err)
		}
	}
}

// pause is how long to listen before the next request. If the holder may have died by then, it is shorter.
func (w *Waiter) pause(left time.Duration) time.Duration {
	pause := w.Poll*8/10 + rand.N(w.Poll*2/10)
	if left > 0 {
		pause = min(pause, left+time.Millisecond+rand.N(w.Poll/10))
	}
	return pause
}

func (w *Waiter) ask(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	lease, left, err := w.Attempt.Ask(ctx)
	if err != nil && !errors.Is(err, dlock.ErrInvalidPermits) {
		w.uncertain = w.uncertain || redisx.Uncertain(err)
	}
	return lease, left, err
}

// giveUp releases what the owner has or may have in Redis: its place in the queue, or a grant that is on its way. It
// returns the error of the acquisition. A nil cause means that ctx has ended. It waits for Redis for a moment, so
// that usually nothing is left.
func (w *Waiter) giveUp(ctx context.Context, cause error) error {
	why := driver.InTime(ctx, cause)
	if cause == nil || errors.Is(cause, redisx.ErrUnsent) {
		why = dlock.Ended(ctx)
	}
	certain := cause == nil || !redisx.Uncertain(cause)
	if certain && w.Queued.IsZero() && !w.uncertain {
		return why
	}
	if certain || ctx.Err() != nil && !w.Queued.IsZero() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Timeout/4)
		defer cancel()
		if found, err := w.Rollback.Now(soon, w.Held); err == nil && (found || certain && !w.Signaled) {
			if w.uncertain {
				w.Abandon(ctx) // that request may be on its way yet
			}
			if !certain {
				return dlock.Ended(ctx)
			}
			return why
		}
	}
	w.Abandon(ctx)
	return fmt.Errorf("%w: %w", dlock.ErrUncertain, why)
}
