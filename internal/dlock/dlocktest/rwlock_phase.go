package dlocktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// waiting is one waiter of a case that watches in which order they get in.
type waiting struct {
	name  string
	lease chan *dlock.Lease
	got   *dlock.Lease // from lease
}

// wait starts a waiter and returns once n wait for key.
func (h RWHarness) wait(ctx context.Context, t testing.TB, key, name string, write bool, n int) *waiting {
	t.Helper()
	w, l := &waiting{name: name, lease: make(chan *dlock.Lease, 1)}, side(h.New(t), write)
	go func() {
		lease, err := l.Acquire(ctx, key)
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
		w.lease <- lease
	}()
	h.queued(ctx, t, key, n)
	return w
}

// in returns the leases of those who must be in by now, all of them at once.
func (h RWHarness) in(t testing.TB, waiters ...*waiting) []*dlock.Lease {
	t.Helper()
	var leases []*dlock.Lease
	for _, w := range waiters {
		w.got = within(t, w.lease, 2*h.TTL, w.name+" is not in")
		leases = append(leases, w.got)
	}
	for _, w := range waiters {
		if w.got == nil || w.got.Err() != nil {
			t.Fatalf("%s is out again", w.name)
		}
	}
	return leases
}

func out(t testing.TB, waiters ...*waiting) {
	t.Helper()
	for _, w := range waiters {
		select {
		case <-w.lease:
			t.Fatalf("%s is in", w.name)
		default:
		}
	}
}

// arrivalOrder walks through R1 | W1 | R2 R3 | W2 | R4: a writer that waits stops later readers, and readers that came
// before a writer go before it.
func arrivalOrder(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	r1 := rwTake(ctx, t, h, key, false)
	w1 := h.wait(ctx, t, key, "W1", true, 1)
	rwWantHeld(ctx, t, h, key, true) // only a reader holds it, but a writer waits
	r2 := h.wait(ctx, t, key, "R2", false, 2)
	r3 := h.wait(ctx, t, key, "R3", false, 3)
	w2 := h.wait(ctx, t, key, "W2", true, 4)
	r4 := h.wait(ctx, t, key, "R4", false, 5)
	out(t, w1, r2, r3, w2, r4)

	release(ctx, t, r1)
	lease := h.in(t, w1)
	out(t, r2, r3, w2, r4)
	release(ctx, t, lease[0])

	readers := h.in(t, r2, r3)
	for _, lease := range readers {
		out(t, w2, r4)
		release(ctx, t, lease)
	}
	lease = h.in(t, w2)
	out(t, r4)
	release(ctx, t, lease[0])
	release(ctx, t, h.in(t, r4)[0])
	rwWantFree(ctx, t, h, key)
}

// writersInOrder has writers wait only for each other: with no reader between
// them they go first come, first served.
func writersInOrder(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	inOrder(ctx, t, 5, rwTake(ctx, t, h, key, true), func() dlock.Locker { return h.New(t) }, h.queued)
}

// crowd keeps key busy with n owners whose turns overlap, until stop is called.
func (h RWHarness) crowd(ctx context.Context, t testing.TB, key string, write bool, n int) (stop func()) {
	busy, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range n {
		l := side(h.New(t), write)
		wg.Go(func() {
			for busy.Err() == nil {
				inside(ctx, t, l, key, func(dlock.Fence) error {
					pause(ctx, h.TTL/20)
					return nil
				})
			}
		})
		pause(ctx, h.TTL/20/time.Duration(n))
	}
	return func() { cancel(); wg.Wait() }
}

// isNotStarved has a writer, or a reader, come while a crowd of the other side keeps the key busy.
func isNotStarved(write bool) func(ctx context.Context, t testing.TB, h RWHarness, key string) {
	return func(ctx context.Context, t testing.TB, h RWHarness, key string) {
		stop := h.crowd(ctx, t, key, !write, 4)
		defer stop()
		for range 3 {
			start := time.Now()
			lease := rwTake(ctx, t, h, key, write)
			if d := time.Since(start); d > 5*h.TTL {
				t.Errorf("waited for %v, and each of the others stays for %v", d, h.TTL/20)
			}
			release(ctx, t, lease)
		}
	}
}

// cancelledRWWaiter gives up while the grant is on its way: then nobody has it.
func cancelledRWWaiter(ctx context.Context, t testing.TB, h RWHarness, key string) {
	for i := range 40 {
		holder := rwTake(ctx, t, h, key, true)
		mortal, giveUp := context.WithCancel(ctx)
		w := h.wait(mortal, t, key, "the waiter", i%2 == 0, 1)
		start := time.Now()
		giveUp() // the waiter is notified of this and of the grant at about the same time
		release(ctx, t, holder)
		if lease := <-w.lease; lease != nil {
			release(ctx, t, lease)
		}
		release(ctx, t, rwTake(ctx, t, h, key, true))
		wantSoon(t, h.TTL, start)
	}
}
