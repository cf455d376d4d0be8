package dlocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

func waitTimesOut(ctx context.Context, t *testing.T, h CondHarness, key string) {
	c := h.New(t)
	short, cancel := context.WithTimeout(ctx, h.TTL/2)
	defer cancel()
	lease := h.lock(ctx, t, c, key)
	start := time.Now()
	_, err := c.A.Wait(short, lease)
	wantErr(t, err, context.DeadlineExceeded)
	if d := time.Since(start); d < h.TTL/4 || d > h.TTL {
		t.Errorf("Wait returned after %v, its limit was %v", d, h.TTL/2)
	}
	wantErr(t, lease.Err(), dlock.ErrReleased)
	h.wantFree(ctx, t, key)
	s := h.sleep(ctx, t, h.New(t), key)
	h.notify(ctx, t, key) // for s, not for who has left
	release(ctx, t, h.awake(t, s))
}

func deadContextWaits(ctx context.Context, t *testing.T, h CondHarness, key string) {
	c := h.New(t)
	reason := errors.New("shutting down")
	dead, cancel := context.WithCancelCause(ctx)
	cancel(reason)
	_, err := c.A.Wait(dead, h.lock(ctx, t, c, key))
	wantErr(t, err, context.Canceled)
	wantErr(t, err, reason)
	h.wantFree(ctx, t, key)
}

func cancelledWaiterPassesOn(ctx context.Context, t *testing.T, h CondHarness, key string) {
	c := h.New(t)
	mortal, giveUp := context.WithCancel(ctx)
	first, second := h.sleep(mortal, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lease), nil)
	giveUp()
	_, err := h.end(t, first)
	wantErr(t, err, context.Canceled)
	h.asleep(ctx, t, second) // the key is held
	release(ctx, t, lease)
	release(ctx, t, h.awake(t, second))
	h.wantFree(ctx, t, key)
}

// cancelledWaiterPassesGrantOn gives up while the grant is on its way: either the
// waiter has it, or the next one has, and never nobody.
func cancelledWaiterPassesGrantOn(ctx context.Context, t *testing.T, h CondHarness, key string) {
	for range 8 {
		mortal, giveUp := context.WithCancel(ctx)
		first, second := h.sleep(mortal, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
		var wg sync.WaitGroup
		wg.Go(func() { h.notify(ctx, t, key) })
		wg.Go(func() {
			pause(ctx, rand.N(h.TTL/200))
			giveUp()
		})
		lease, err := h.end(t, first)
		wg.Wait()
		if err == nil {
			h.asleep(ctx, t, second)
			release(ctx, t, lease)
			h.notify(ctx, t, key)
		}
		release(ctx, t, h.awake(t, second))
		h.wantFree(ctx, t, key)
	}
}

func waitOnLostLease(ctx context.Context, t *testing.T, h CondHarness, key string) {
	c := h.New(t)
	lost := h.lock(ctx, t, c, key)
	h.Expire(t, key)
	next := h.lock(ctx, t, c, key)
	_, err := c.A.Wait(ctx, lost)
	wantErr(t, err, dlock.ErrLost)
	_, err = c.TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld) // the other grant stays
	release(ctx, t, next)

	released := h.lock(ctx, t, c, key)
	release(ctx, t, released)
	_, err = c.A.Wait(ctx, released)
	wantErr(t, err, dlock.ErrReleased)

	s := h.sleep(ctx, t, h.New(t), key)
	h.notify(ctx, t, key) // nothing was queued before s
	release(ctx, t, h.awake(t, s))
}

// nestedHolderMayNotWait: one of several leases cannot give the key away, and one
// context cannot end a lease and outlive it. Neither costs the holder its lease.
func nestedHolderMayNotWait(ctx context.Context, t *testing.T, h CondHarness, key string) {
	if !h.Reentrant {
		t.Skip("the backend is not reentrant")
	}
	c := h.New(t)
	outer := h.lock(ctx, t, c, key)
	work, cancel := outer.Context(ctx)
	defer cancel()
	inner, err := c.Acquire(work, key)
	wantErr(t, err, nil)
	for _, lease := range []*dlock.Lease{outer, inner} {
		_, err = c.A.Wait(ctx, lease)
		wantErr(t, err, dlock.ErrReentry)
		wantErr(t, lease.Err(), nil)
	}
	wantErr(t, c.A.Signal(ctx, inner), nil)
	release(ctx, t, inner)
	_, err = c.A.Wait(work, outer)
	wantErr(t, err, dlock.ErrReentry)
	wantErr(t, outer.Err(), nil)
	_, err = h.New(t).TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, outer)
	h.wantFree(ctx, t, key)
}

func signalNeedsTheLock(ctx context.Context, t *testing.T, h CondHarness, key string) {
	c := h.New(t)
	s := h.sleep(ctx, t, h.New(t), key)
	lost := h.lock(ctx, t, c, key)
	h.Expire(t, key)
	next := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lost), dlock.ErrLost)
	wantErr(t, c.A.Broadcast(ctx, lost), dlock.ErrLost)
	release(ctx, t, next)
	wantErr(t, c.A.Signal(ctx, next), dlock.ErrReleased)
	wantErr(t, c.A.Broadcast(ctx, next), dlock.ErrReleased)
	h.asleep(ctx, t, s)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}

// noLostWakeups sends numbers through a buffer with two places. A wakeup that is
// lost leaves everybody asleep, one too many hands a number out twice or never.
func noLostWakeups(ctx context.Context, t *testing.T, h CondHarness, key string) {
	const producers, consumers, each = 3, 2, 10
	var (
		wg     sync.WaitGroup
		buffer []int // these three are guarded by the lock under test
		got    []int
		made   int
	)
	// step runs do under the lock once ready holds, and wakes one of those who wait for it.
	step := func(l dlock.Locker, wait, wake dlock.Cond, ready func() bool, do func()) bool {
		lease, err := l.Acquire(ctx, key)
		for err == nil && !ready() {
			lease, err = wait.Wait(ctx, lease)
		}
		if err != nil {
			t.Error(err)
			return false
		}
		do()
		if err := wake.Signal(ctx, lease); err != nil {
			t.Error(err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
		return true
	}
	for range producers {
		c := h.New(t)
		wg.Go(func() {
			put := func() { made++; buffer = append(buffer, made) }
			for range each {
				if !step(c, c.A, c.B, func() bool { return len(buffer) < 2 }, put) {
					return
				}
			}
		})
	}
	for range consumers {
		c := h.New(t)
		wg.Go(func() {
			take := func() { got = append(got, buffer[0]); buffer = buffer[1:] }
			for range producers * each / consumers {
				if !step(c, c.B, c.A, func() bool { return len(buffer) > 0 }, take) {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(got) != producers*each || !slices.IsSorted(got) || len(slices.Compact(got)) != producers*each {
		t.Errorf("%d numbers went in, out came %v", producers*each, got)
	}
	h.wantFree(ctx, t, key)
}

// deadWaiterIsSkipped has the process of the first waiter vanish: a signal after
// that reaches the second.
func deadWaiterIsSkipped(ctx context.Context, t *testing.T, h CondHarness, key string) {
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	c, link := h.Behind(t)
	gone, giveUp := context.WithCancel(ctx)
	dead := h.sleep(gone, t, c, key)
	second := h.sleep(ctx, t, h.New(t), key)
	link.Cut()
	pause(ctx, h.Patience+h.TTL/4)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, second))
	giveUp()
	link.Heal()
	_, err := h.end(t, dead)
	wantErr(t, err, context.Canceled)
}

// condWaitersLeaveNothing has many give up at random, signalled or not.
func condWaitersLeaveNothing(ctx context.Context, t *testing.T, h CondHarness, key string) {
	const waiters = 40
	c := h.New(t)
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			lease, err := c.Acquire(ctx, key)
			if err == nil {
				short, cancel := context.WithTimeout(ctx, rand.N(h.TTL))
				defer cancel()
				lease, err = c.A.Wait(short, lease)
			}
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	for range waiters / 4 {
		h.notify(ctx, t, key)
		pause(ctx, h.TTL/40)
	}
	wg.Wait()
	release(ctx, t, h.lock(ctx, t, c, key)) // what a late answer took is given back soon
	if h.Waiting == nil {
		h.wantFree(ctx, t, key)
		return
	}
	for h.Waiting(t, key) != 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d still wait", h.Waiting(t, key))
		}
		pause(ctx, h.TTL/100)
	}
	h.wantFree(ctx, t, key)
}
