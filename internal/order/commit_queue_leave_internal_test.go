package order

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock"
)

// A caller that gives up leaves its lane at once, and with the last caller the instance stops waiting for the lease.
func TestCallerThatGivesUpLeavesItsLane(t *testing.T) {
	bothLeases(t, func(r *rig) {
		waiters := func() int {
			s, _ := r.lock.Inspect(r.Context(), stock.LockKey("a"))
			return s.Waiters
		}
		release := r.hold("a")
		ctx, giveUp := context.WithCancelCause(r.Context())
		first, stays := r.do(ctx, "1", "a"), r.do(r.Context(), "2", "a")
		giveUp(errGone)
		r.ended(first, errGone)
		r.waits(stays)
		release()
		r.commit("2").answer <- nil
		r.ended(stays, nil)

		release = r.hold("a")
		ctx, giveUp = context.WithCancelCause(r.Context())
		last := r.do(ctx, "3", "a")
		if n := waiters(); n != 1 {
			r.Errorf("%d wait for the lease", n)
		}
		giveUp(errGone)
		r.ended(last, errGone)
		if n := waiters(); n != 0 {
			r.Errorf("%d wait for the lease of nobody", n)
		}
		again := r.do(r.Context(), "4", "a")
		release()
		r.commit("4").answer <- nil
		r.ended(again, nil)
		r.ended(r.do(ctx, "5", "a"), errGone) // and does not join with a dead context
		r.nobody()
	})
}

// A caller leaves also while a transaction with others is open. Nobody commits its order.
func TestCallerThatGivesUpIsInNoTransaction(t *testing.T) {
	for _, sku := range []string{"a", "conditional/a", "redis/a", "for-update/a"} {
		t.Run(sku, func(t *testing.T) {
			bubble(t, inRounds, func(r *rig) {
				end := r.fill()
				ctx, giveUp := context.WithCancelCause(r.Context())
				goes, stays := r.do(ctx, "1", sku), r.do(r.Context(), "2", "conditional/b")
				giveUp(errGone)
				r.ended(goes, errGone)
				end()
				r.commit("2").answer <- nil
				r.ended(stays, nil)
				r.nobody()
			})
		})
	}
}

// The maximum wait bounds the wait for the lease, and not the transaction.
func TestMaximumWaitEndsInTheLane(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release, began := r.hold("a"), time.Now()
		late, soon := r.bounded(r.Context(), time.Second, "1"), r.bounded(r.Context(), 0, "2")
		if err := <-soon; !errors.Is(err, stock.ErrLockHeld) || time.Since(began) != noWaitGrace {
			r.Errorf("%v after %v", err, time.Since(began))
		}
		release()
		c := r.commit("1")
		time.Sleep(time.Minute)
		r.waits(late)
		c.answer <- nil
		r.ended(late, nil)
	})
}

// Many who give up leave nothing behind, though nobody is served.
func TestLaneDoesNotGrowByThoseWhoLeft(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		stays := r.do(r.Context(), "0", "a")
		for range 100 {
			ctx, giveUp := context.WithCancel(r.Context())
			done := r.do(ctx, "1", "a")
			giveUp()
			r.ended(done, context.Canceled)
			if a, b := r.queue.waitingFor("a"), r.queue.waitingFor("b"); a != 1 || b != 0 {
				r.Fatalf("%d wait for a, %d for b, want 1 and 0", a, b)
			}
			if n := len(r.queue.lanes[laneKey{sku: "a"}].entries); n > 3 {
				r.Fatalf("%d orders are kept for one that waits", n)
			}
		}
		release()
		c := r.commit("0")
		if n := r.queue.waitingFor("a"); n != 0 {
			r.Errorf("%d wait while they are being committed", n)
		}
		c.answer <- nil
		r.ended(stays, nil)
	})
}

// A lane has room for maxQueue orders. One that leaves makes room.
func TestFullLaneRefuses(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		release := r.hold("a")
		others, stop := context.WithCancelCause(r.Context())
		var callers sync.WaitGroup
		for n := range maxQueue - 1 {
			e := r.entry(others, fmt.Sprint("other", n), "a")
			callers.Go(func() {
				if err := r.queue.do(e); !errors.Is(err, errGone) {
					r.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, giveUp := context.WithCancelCause(r.Context())
		last := r.do(ctx, "1", "a")
		r.ended(r.do(r.Context(), "2", "a"), errFull, stock.ErrBusy)
		beside := r.do(r.Context(), "3", "conditional/b") // which has a lane of its own
		r.commit("3").answer <- nil
		r.ended(beside, nil)
		giveUp(errGone)
		r.ended(last, errGone)
		next := r.do(r.Context(), "4", "a")
		r.waits(next)
		stop(errGone)
		callers.Wait()
		release()
		r.commit("4").answer <- nil
		r.ended(next, nil)
	})
}
