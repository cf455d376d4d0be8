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

// noLostWakeups sends numbers through a buffer with two places. A wakeup that is
// lost leaves everybody asleep, one too many hands a number out twice or never.
func noLostWakeups(ctx context.Context, t testing.TB, h CondHarness, key string) {
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
func deadWaiterIsSkipped(ctx context.Context, t testing.TB, h CondHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	c, link := h.Behind(t)
	gone, giveUp := context.WithCancel(ctx)
	dead := h.sleep(gone, t, c, key)
	second := h.sleep(ctx, t, h.New(t), key)
	link.Cut()
	pause(ctx, h.WaiterTTL+h.TTL/4)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, second))
	giveUp()
	if _, err := h.end(t, dead); err == nil {
		t.Error("the waiter that was taken for dead has the key too")
	}
	link.Heal() // what it has asked for last is executed now, and the key is free
}

// condWaitersLeaveNothing has many give up at random, signalled or not, and some
// just when they get the key.
func condWaitersLeaveNothing(ctx context.Context, t testing.TB, h CondHarness, key string) {
	const waiters = 40
	c := h.New(t)
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			lease, err := c.Acquire(ctx, key)
			if err == nil {
				short, cancel := context.WithTimeout(ctx, rand.N(time.Duration(20))*h.TTL/40)
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
		start := time.Now()
		h.notify(ctx, t, key)
		wantSoon(t, h.TTL, start)
		pause(ctx, h.TTL/40)
	}
	wg.Wait()
	release(ctx, t, h.lock(ctx, t, c, key)) // what a late answer took is released soon
	h.queued(ctx, t, key, 0)
	h.wantFree(ctx, t, key)
}

// replyLostWait lets the store execute the request of Wait and drops the reply. The client then holds nothing, and
// takes no signal from others.
func replyLostWait(ctx context.Context, t testing.TB, h CondHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	for range 2 {
		c, link := h.Behind(t) // rollbacks of the previous client take no part
		lease := h.lock(ctx, t, c, key)
		start := time.Now()
		link.LoseReply()
		_, err := c.A.Wait(ctx, lease)
		wantErr(t, err, dlock.ErrUncertain)
		wantLostReply(t, link)
		s := h.sleep(ctx, t, h.New(t), key)
		wantSoon(t, h.TTL, start)
		h.queued(ctx, t, key, 1)
		h.notify(ctx, t, key)
		release(ctx, t, h.awake(t, s))
	}
}
