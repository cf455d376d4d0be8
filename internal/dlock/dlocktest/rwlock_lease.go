package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func writerGetsNewFence(ctx context.Context, t testing.TB, h RWHarness, key string) {
	var last dlock.Fence
	for i := range 6 {
		write := i%3 != 1
		lease := rwTake(ctx, t, h, key, write)
		f := lease.Fence()
		if f.Owner == "" || f.Token < last.Token {
			testbedtest.Final(t, "fence %+v follows %+v", f, last)
		}
		if write && (f.Token == last.Token || f.Owner == last.Owner) {
			testbedtest.Final(t, "a writer's fence %+v follows %+v", f, last)
		}
		if write {
			last = f
		}
		release(ctx, t, lease)
	}
	// From hand to hand too.
	lease := rwTake(ctx, t, h, key, true)
	for range 2 {
		w := h.wait(ctx, t, key, "the next writer", true, 1)
		last = lease.Fence()
		release(ctx, t, lease)
		lease = h.in(t, w)[0]
		if f := lease.Fence(); f.Token <= last.Token || f.Owner == last.Owner {
			testbedtest.Final(t, "a writer's fence %+v follows %+v", f, last)
		}
	}
	release(ctx, t, lease)
}

func rwKeepsAlive(ctx context.Context, t testing.TB, h RWHarness, key string) {
	w, r := rwTake(ctx, t, h, key+"-w", true), rwTake(ctx, t, h, key+"-r", false)
	for start := time.Now(); time.Since(start) < 3*h.TTL; {
		rwWantHeld(ctx, t, h, key+"-w", true)
		rwWantHeld(ctx, t, h, key+"-r", false)
		wantErr(t, w.Err(), nil)
		wantErr(t, r.Err(), nil)
		pause(ctx, h.TTL/10)
	}
	release(ctx, t, w)
	release(ctx, t, r)
}

// isLate has a writer, or a reader, release what it has lost to the other side.
func isLate(write bool) func(ctx context.Context, t testing.TB, h RWHarness, key string) {
	return func(ctx context.Context, t testing.TB, h RWHarness, key string) {
		late := rwTake(ctx, t, h, key, write)
		h.Expire(t, key)
		holder := rwTake(ctx, t, h, key, !write)
		wantErr(t, late.Release(ctx), dlock.ErrLost)
		rwWantHeld(ctx, t, h, key, !write)
		wantErr(t, holder.Err(), nil)
		release(ctx, t, holder)
	}
}

// deadReader has a writer wait for a reader that never releases.
func deadReader(ctx context.Context, t testing.TB, h RWHarness, key string) {
	dead := rwTake(ctx, t, h, key, false)
	w := h.wait(ctx, t, key, "the writer", true, 1)
	h.Expire(t, key)
	lease := h.in(t, w)[0]
	waitDone(t, dead, h.TTL)
	wantErr(t, lease.Err(), nil)
	release(ctx, t, lease)
}

// deadWriter has readers, and behind them a writer, wait for a writer that never releases.
func deadWriter(ctx context.Context, t testing.TB, h RWHarness, key string) {
	dead := rwTake(ctx, t, h, key, true)
	r := h.wait(ctx, t, key, "the reader", false, 1)
	w := h.wait(ctx, t, key, "the writer", true, 2)
	h.Expire(t, key)
	release(ctx, t, h.in(t, r)[0])
	lease := h.in(t, w)[0]
	waitDone(t, dead, h.TTL)
	release(ctx, t, lease)
}

// deadWaiter has a writer die while it waits: readers must not wait for it.
func deadWaiter(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	first := rwTake(ctx, t, h, key, false)
	gone, giveUp := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Acquire(gone, key)
	}()
	h.queued(ctx, t, key, 1)
	link.Cut()
	start := time.Now()
	release(ctx, t, rwTake(ctx, t, h, key, false))
	if d := time.Since(start); d > h.WaiterTTL+h.TTL {
		t.Errorf("a reader waited for a dead writer for %v", d)
	}
	giveUp()
	link.Heal()
	<-ended
	release(ctx, t, first)
}

func rwBlackHole(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	for _, write := range []bool{true, false} {
		cutOff(ctx, t, h.TTL, link,
			func() (*dlock.Lease, error) { return side(l, write).Acquire(ctx, key) },
			func() *dlock.Lease { return rwTake(ctx, t, h, key, true) })
	}
}
