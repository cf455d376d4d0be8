package dlocktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/share"
)

// turnsOfAGrant has two processes of many callers, which take turns under the grants of their processes. All that the
// lock promises holds for each turn.
func turnsOfAGrant(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Shares, "each caller has a grant of its own")
	const callers, times = 20, 5
	var (
		all   sync.WaitGroup
		busy  bool // guarded by the lock under test, as is the rest
		last  dlock.Fence
		turns int // of the grants that were shared
		seen  = map[string]int{}
	)
	for _, l := range []dlock.Locker{h.New(t), h.New(t)} {
		for range callers {
			all.Go(func() {
				for range times {
					inside(ctx, t, l, key, func(f dlock.Fence) error {
						if busy || !f.Passes(last) {
							t.Errorf("%v after %v; is another one inside: %t", f, last, busy)
						}
						busy, last = true, f
						grant, _, turn := strings.Cut(f.Owner, "+")
						if seen[grant]++; turn {
							turns++
						}
						busy = false
						return nil
					})
				}
			})
		}
	}
	all.Wait()
	for owner, n := range seen {
		if n > share.Turns {
			t.Errorf("%d turns under the grant of %s, want %d at most", n, owner, share.Turns)
		}
	}
	if turns == 0 {
		t.Error("no grant was shared")
	}
}

// othersWaitForOneGrant has a crowd of one process arrive after a waiter of another one.
func othersWaitForOneGrant(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Shares && h.FIFO, "grants are not shared, or not made in order")
	crowd, other := h.New(t), h.New(t)
	first := acquire(ctx, t, h, crowd, key)
	var (
		all    sync.WaitGroup
		passed bool // guarded by the lock under test, as is before
		before int
	)
	all.Go(func() {
		inside(ctx, t, other, key, func(dlock.Fence) error { passed = true; return nil })
	})
	h.queued(ctx, t, key, 1)
	for range 10 * share.Turns {
		all.Go(func() {
			inside(ctx, t, crowd, key, func(dlock.Fence) error {
				if !passed {
					before++
				}
				return nil
			})
		})
	}
	release(ctx, t, first)
	all.Wait()
	if before >= share.Turns {
		t.Errorf("%d callers of the process that held the key got it before the one who waited, want less than %d", before, share.Turns)
	}
}

// turnAfter has a caller wait for key while another one of l holds it, until leave releases the lease of the holder. It
// returns the lease of the waiter, or nil, and reports whether that is a turn under the same grant. Sharing ends after
// 20 ms, which a busy machine may not notice.
func turnAfter(ctx context.Context, t testing.TB, h Harness, l dlock.Locker, key string, leave func(first *dlock.Lease)) (lease *dlock.Lease, shared bool) {
	t.Helper()
	first := acquire(ctx, t, h, l, key)
	next := acquiring(ctx, l, key)
	pause(ctx, time.Millisecond)
	leave(first)
	got := <-next
	if got.err != nil {
		t.Error(got.err)
		return nil, false
	}
	return got.lease, strings.Contains(got.lease.Fence().Owner, "+")
}

// turnIsKeptAlive holds a turn that is not the first one for longer than the store keeps a grant that is not renewed.
func turnIsKeptAlive(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Shares, "each caller has a grant of its own")
	l, other := h.New(t), h.New(t)
	for shared := false; !shared; {
		var lease *dlock.Lease
		if lease, shared = turnAfter(ctx, t, h, l, key, func(first *dlock.Lease) { release(ctx, t, first) }); lease == nil {
			return
		}
		if shared {
			pause(ctx, 2*h.TTL)
			if err := lease.Err(); err != nil {
				t.Errorf("the turn has ended: %v", err)
			}
			if _, err := other.TryAcquire(ctx, key); !errors.Is(err, dlock.ErrHeld) {
				t.Errorf("TryAcquire beside a turn = %v", err)
			}
		}
		release(ctx, t, lease)
	}
}

// turnAfterALongWait has two callers of a process wait for longer than the store keeps a grant that is not renewed.
func turnAfterALongWait(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Shares, "each caller has a grant of its own")
	l := h.New(t)
	for shared := false; !shared; { // sharing ends after 20 ms, which a busy machine may not notice
		first := acquire(ctx, t, h, h.New(t), key)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				lease, err := l.Acquire(ctx, key)
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Err(); err != nil {
					t.Errorf("the lease of %v has ended before its holder had it: %v", lease.Fence(), err)
				}
				if strings.Contains(lease.Fence().Owner, "+") {
					shared = true // guarded by the lock under test
				}
				if err := lease.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		pause(ctx, 2*h.TTL)
		release(ctx, t, first)
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// lossEndsTheTurns takes the key from a holder while others of its process wait.
func lossEndsTheTurns(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Shares, "each caller has a grant of its own")
	l := h.New(t)
	var lost dlock.Fence
	lease, _ := turnAfter(ctx, t, h, l, key, func(first *dlock.Lease) {
		h.Expire(t, key)
		waitDone(t, first, 10*h.TTL)
		wantErr(t, first.Release(ctx), dlock.ErrLost)
		lost = first.Fence()
	})
	if lease != nil {
		if f := lease.Fence(); !f.Passes(lost) || f.Owner == lost.Owner {
			t.Errorf("%v after %v, which was lost", f, lost)
		}
		release(ctx, t, lease)
	}
}
