package order

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// Orders whose fence is refused are tried again under another lease, together with those who have come meanwhile, behind them.
// It does not matter whether the whole transaction is refused, or their batch.
func TestFencedOrdersAreRetried(t *testing.T) {
	for name, refuse := range map[string]func(c transaction){
		"transaction": func(c transaction) { c.answer <- dlock.ErrFenced },
		"batch": func(c transaction) {
			b := c.batches[0]
			b.Err = &stock.FencedError{Refused: b.Claims[0], Accepted: dlock.Fence{Token: c.fence().Token + 1}}
			c.answer <- nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothLeases(t, func(r *rig) {
				release := r.hold("a")
				ctx, giveUp := context.WithCancelCause(r.Context())
				goes, stays := r.do(ctx, "1", "a"), r.all("a", "2", "3")
				release()
				one := r.commit("1 2 3")
				later := r.do(r.Context(), "4", "a")
				giveUp(errGone)
				r.waits(goes)
				refuse(one)
				two := r.commit("2 3 4")
				r.ended(goes, errGone, dlock.ErrFenced)
				r.newer(one, two)
				two.answer <- nil
				r.ended(later, nil)
				r.ended(stays["2"], nil)
				r.ended(stays["3"], nil)
			})
		})
	}
}

// A stale fence, or another error of one batch, is no fault of the batches beside it.
func TestFailedBatchFailsNoOther(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		end := r.fill()
		stale, good, missing := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b"), r.do(r.Context(), "3", "conditional/c")
		end()
		c := r.commit("3")
		c.batches[0].Err = stock.ErrNotFound
		c.answer <- nil
		r.ended(missing, stock.ErrNotFound)
		c = r.commit("1 | 2")
		c.batches[0].Err = dlock.ErrFenced
		c.answer <- nil
		r.ended(good, nil)
		r.waits(stale)
		r.commit("1").answer <- nil
		r.ended(stale, nil)
	})
}

// The loss of the lease ends the work, which is done again under another one. Nothing is split for that.
func TestLostLeaseIsReplaced(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		first, second := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "a")
		release()
		one := r.commit("1 2")
		if err := r.lock.ForceRelease(r.Context(), stock.LockKey("a")); err != nil {
			r.Fatal(err)
		}
		<-one.ctx.Done()
		if !errors.Is(context.Cause(one.ctx), dlock.ErrLost) {
			r.Error(context.Cause(one.ctx))
		}
		one.answer <- errPoison // whatever it is
		two := r.commit("1 2")
		r.newer(one, two)
		two.answer <- nil
		r.ended(first, nil)
		r.ended(second, nil)
	})
}

// A lease that is lost while its order waits for a transaction is replaced before the order is in one.
func TestLeaseLostBeforeTheTransaction(t *testing.T) {
	for _, sku := range []string{"a", "redis/a"} {
		t.Run(sku, func(t *testing.T) {
			lock := memlock.New(memlock.Config{TTL: longTransaction / 2}) // which is renewed thrice in that time
			bubble(t, func(*memlock.Locker) dlock.Locker { return leader{lock} }, func(r *rig) {
				end := r.fill()
				done := r.do(r.Context(), "1", sku)
				before, _ := lock.Inspect(r.Context(), stock.LockKey(sku))
				if err := lock.ForceRelease(r.Context(), stock.LockKey(sku)); err != nil || !before.Held {
					r.Fatal(before, err)
				}
				time.Sleep(longTransaction / 2)
				end()
				c := r.commit("1")
				if c.fence().Token <= before.Fence.Token {
					r.Errorf("fence %v after %v was lost", c.fence(), before.Fence)
				}
				c.answer <- nil
				r.ended(done, nil)
			})
		})
	}
}

// away is a lock service whose answers come from the test.
type away struct {
	*memlock.Locker

	answers chan error
}

// Acquire implements [dlock.Locker].
func (l away) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if err := <-l.answers; err != nil {
		return nil, err
	}
	return l.Locker.Acquire(ctx, key)
}

// TryAcquireEach implements [dlock.EachLocker].
func (away) TryAcquireEach(context.Context, []string) (*dlock.Lease, error) { return nil, errPoison }

// A lock service that is away is the answer to all who waited for it, and not to those who come later, nor to those who need no lease.
func TestLockServiceThatIsAway(t *testing.T) {
	for _, leaders := range []bool{true, false} {
		t.Run(map[bool]string{true: "leaders", false: "rounds"}[leaders], func(t *testing.T) {
			var l away
			over := func(lock *memlock.Locker) dlock.Locker {
				l = away{lock, make(chan error)}
				if leaders {
					return leader{l}
				}
				return l
			}
			bubble(t, over, func(r *rig) {
				before := r.do(r.Context(), "1", "a")
				after := r.do(r.Context(), "2", "a")
				beside := r.do(r.Context(), "3", "conditional/b")
				r.commit("3").answer <- nil
				r.ended(beside, nil)
				l.answers <- errPoison
				r.ended(before, errPoison, stock.ErrLockAway)
				r.waits(after)
				l.answers <- dlock.ErrLost // before anything was done: once more
				r.waits(after)
				time.Sleep(time.Minute)
				l.answers <- nil
				r.commit("2").answer <- nil
				r.ended(after, nil)
			})
		})
	}
}
