package order

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// inRoundsOf runs f in a bubble whose rounds l notes.
func inRoundsOf(t *testing.T, l *rounds, f func(r *rig)) {
	t.Helper()
	bubble(t, func(lock *memlock.Locker) dlock.Locker {
		l.Locker = lock
		return l
	}, f)
}

// calls returns of which SKUs the leases were asked for at once since the latest call.
func (l *rounds) calls() (asked []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, l.asked = l.asked, nil
	return asked
}

// A round takes the leases of the SKUs that wait in one call, and releases them after their transaction. Other orders need none.
func TestRoundTakesTheLeasesOfSeveralSKUs(t *testing.T) {
	l := new(rounds)
	inRoundsOf(t, l, func(r *rig) {
		end := r.fill()
		done := []<-chan error{r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b"), r.do(r.Context(), "3", "c"), r.do(r.Context(), "4", "b")}
		if asked := l.calls(); asked != nil {
			r.Errorf("leases of %q are held although their transaction cannot begin", asked)
		}
		end()
		c := r.commit("1 | 2 4 | 3")
		if asked := l.calls(); !slices.Equal(asked, []string{"a b c"}) {
			r.Errorf("the calls are for %q", asked)
		}
		for _, b := range c.batches {
			s, _ := r.lock.Inspect(r.Context(), stock.LockKey(b.Claims[0].SKU))
			if len(b.Claims) != 1 || !s.Held || s.Fence != b.Claims[0].Fence {
				r.Errorf("%+v is claimed while the lease is %+v", b.Claims, s)
			}
		}
		next := r.do(r.Context(), "5", "a")
		c.answer <- nil
		for _, d := range done {
			r.ended(d, nil)
		}
		time.Sleep(longestPause)
		last := r.commit("5")
		r.newer(c, last) // for which others had their turn
		r.hold("b")()
		last.answer <- nil
		r.ended(next, nil)
	})
}

// A lane whose lease another process has waits for it alone. The others of its round are committed.
func TestLaneWhoseLeaseIsHeldLeavesItsRound(t *testing.T) {
	l := new(rounds)
	inRoundsOf(t, l, func(r *rig) {
		release, end := r.hold("b"), r.fill()
		one, two, three := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b"), r.do(r.Context(), "3", "c")
		end()
		r.commit("1 | 3").answer <- nil
		r.ended(one, nil)
		r.ended(three, nil)
		r.waits(two)
		if asked := l.calls(); !slices.Equal(asked, []string{"a b c"}) {
			r.Errorf("the calls are for %q", asked)
		}
		release()
		r.commit("2").answer <- nil
		r.ended(two, nil)
	})
}

// One round of a service is asked for at a time. Lanes that come meanwhile are in the next one, together.
func TestOneRoundIsAskedForAtATime(t *testing.T) {
	l := &rounds{}
	inRoundsOf(t, l, func(r *rig) {
		l.gate = make(chan struct{})
		one, two, three := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b"), r.do(r.Context(), "3", "c")
		beside := r.do(r.Context(), "4", "conditional/a")
		r.commit("4").answer <- nil
		r.ended(beside, nil)
		if asked := l.calls(); !slices.Equal(asked, []string{"a"}) {
			r.Errorf("the calls are for %q, want one", asked)
		}
		l.gate <- struct{}{}
		c := r.commit("1")
		synctest.Wait()
		if asked := l.calls(); !slices.Equal(asked, []string{"b c"}) {
			r.Errorf("during the transaction of the first round the calls are for %q", asked)
		}
		close(l.gate)
		synctest.Wait()
		c.answer <- nil
		r.ended(one, nil)
		r.commit("2 | 3").answer <- nil
		r.ended(two, nil)
		r.ended(three, nil)
	})
}

// If a round does not fit into one transaction, its leases last until the latest one has ended, and no longer.
func TestLeasesOfARoundLastUntilItsLatestTransaction(t *testing.T) {
	l := &rounds{}
	inRoundsOf(t, l, func(r *rig) {
		l.gate = make(chan struct{})
		end := r.fill()
		one, two := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b")
		end()
		end = r.fill()
		done := make([]<-chan error, maxShared-1)
		for n := range done {
			done[n] = r.do(r.Context(), fmt.Sprint("other", n), fmt.Sprint("for-update/", n))
		}
		close(l.gate)
		synctest.Wait()
		end()
		c := <-r.begun
		if n, ids := len(c.batches), c.batches[maxShared-1].Requests[0].Order.ID; n != maxShared || ids != "1" {
			r.Errorf("%d batches in the transaction, the latest of %q", n, ids)
		}
		c.answer <- nil
		for _, d := range append(done, one) {
			r.ended(d, nil)
		}
		next := r.do(r.Context(), "3", "a")
		c = r.commit("2")
		for _, sku := range []string{"a", "b"} {
			if s, _ := r.lock.Inspect(r.Context(), stock.LockKey(sku)); !s.Held {
				r.Errorf("the lease of %s has ended before its round", sku)
			}
		}
		r.nobody()
		c.answer <- nil
		r.ended(two, nil)
		c = r.commit("3")
		r.hold("b")()
		c.answer <- nil
		r.ended(next, nil)
	})
}

// A round that nobody waits for any more is released.
func TestRoundOfNobodyIsReleased(t *testing.T) {
	l := &rounds{}
	inRoundsOf(t, l, func(r *rig) {
		l.gate = make(chan struct{})
		ctx, giveUp := context.WithCancelCause(r.Context())
		one, two := r.do(ctx, "1", "a"), r.do(r.Context(), "2", "b")
		giveUp(errGone)
		r.ended(one, errGone)
		close(l.gate)
		c := r.commit("2")
		r.hold("a")()
		c.answer <- nil
		r.ended(two, nil)
	})
}

// The SKUs of a transaction take turns: one for which many orders wait leaves room for the others.
func TestSKUsTakeTurns(t *testing.T) {
	for _, strategy := range []string{"redis-cohort", "conditional"} {
		t.Run(strategy, func(t *testing.T) {
			bubble(t, inRounds, func(r *rig) {
				end := r.fill()
				done := make([]<-chan error, 1000)
				for n := range done {
					done[n] = r.do(r.Context(), fmt.Sprint(n), strategy+"/a")
				}
				one, two := r.do(r.Context(), "one", strategy+"/b"), r.do(r.Context(), "two", strategy+"/c")
				end()
				c := <-r.begun
				ids := strings.Fields(c.String())
				ids = slices.DeleteFunc(ids, func(id string) bool { return id == "|" })
				if !slices.Contains(ids, "one") || !slices.Contains(ids, "two") || len(ids) < maxShared/3 || len(ids) > maxShared {
					r.Errorf("%d orders are in the next transaction, want all of the SKUs", len(ids))
				}
				c.answer <- nil
				r.ended(one, nil)
				r.ended(two, nil)
				go func() {
					for c := range r.begun {
						c.answer <- nil
					}
				}()
				for _, d := range done {
					if err := <-d; err != nil {
						r.Error(err)
					}
				}
				close(r.begun)
			})
		})
	}
}
