package order

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A batch begins at once while no transaction is open. Later batches share the next transaction: orders of one lease as one batch, a
// basket as one, and orders without a lease one by one.
func TestBatchesThatWaitShareATransaction(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		first := r.do(r.Context(), "1", "conditional/a")
		c := r.commit("1")
		done := r.all("b", "2", "3")
		done["4"] = r.do(r.Context(), "4", "redis/a", "redis/b")
		done["5"], done["6"] = r.do(r.Context(), "5", "conditional/c"), r.do(r.Context(), "6", "for-update/a")
		done["7"] = r.do(r.Context(), "7", "conditional/c")
		c.answer <- nil
		r.ended(first, nil)
		c = r.commit("2 3 | 4 | 5 | 7 | 6")
		if n := len(c.batches[1].Claims); n != 2 {
			r.Errorf("the basket has %d claims", n)
		}
		c.answer <- nil
		for _, d := range done {
			r.ended(d, nil)
		}
	})
}

// Orders that decide by earlier reads, or may wait for another row, have their own transactions at once, whatever else is open.
func TestOrdersThatShareNoTransaction(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		end, began := r.fill(), time.Now()
		var done []<-chan error
		var begun []transaction
		for n, sku := range []string{"naive/a", "naive/a", "optimistic/a", "optimistic/a", "redis-unfenced/a", "local/a"} {
			id := fmt.Sprint(n)
			done, begun = append(done, r.do(r.Context(), id, sku)), append(begun, r.commit(id))
		}
		for _, sku := range []string{"a", "redis/a", "conditional/a", "for-update/a"} {
			e := r.entry(r.Context(), sku, sku)
			e.Queued = true
			done, begun = append(done, r.place(e)), append(begun, r.commit(sku))
		}
		r.nobody()
		if d := time.Since(began); d != 0 {
			r.Errorf("they have waited for %v", d)
		}
		for _, c := range begun {
			c.answer <- nil
		}
		for _, d := range done {
			r.ended(d, nil)
		}
		end()
	})
}

// The repetition of an attempt with an unknown outcome has its own transaction at once.
func TestUncertainOrdersShareNoTransaction(t *testing.T) {
	for _, sku := range []string{"a", "redis/a", "conditional/a", "for-update/a"} {
		t.Run(sku, func(t *testing.T) {
			bubble(t, byLeaders, func(r *rig) {
				done := r.do(r.Context(), "1", sku)
				c := r.commit("1")
				beside := r.do(r.Context(), "2", "conditional/b")
				began := time.Now()
				c.answer <- ErrOutcomeUnknown
				repeated, shared := r.both("1", "2")
				if d := time.Since(began); d > maxPause {
					r.Errorf("it has waited for %v", d)
				}
				repeated.answer <- nil
				r.ended(done, nil)
				shared.answer <- nil
				r.ended(beside, nil)
			})
		})
	}
}

// After a shared transaction, a few orders wait for others, for half the time that it took or for longestPause. Many do not wait, nor
// do as many as it had, and neither does an order that comes when no other waits.
func TestFewWaitForOthers(t *testing.T) {
	const took = 8 * time.Millisecond
	for name, c := range map[string]struct {
		previous    int // orders in the transaction; one does not share it
		waiting     int // when it ends
		took, pause time.Duration
	}{
		"few":             {previous: 2, waiting: 1, took: took, pause: took / 2},
		"slow":            {previous: 2, waiting: 1, took: longTransaction - 1, pause: longestPause},
		"alone":           {previous: 1, waiting: 1, took: took},
		"almost many":     {previous: 2, waiting: manyOrders - 1, took: took, pause: took / 2},
		"many":            {previous: 2, waiting: manyOrders, took: took},
		"many after many": {previous: 2 * manyOrders, waiting: manyOrders, took: took},
		"none":            {previous: 2, took: took},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, inRounds, func(r *rig) {
				var done []<-chan error
				sell := func() { done = append(done, r.do(r.Context(), fmt.Sprint(len(done)), "conditional/b")) }
				end := r.fill()
				for range c.previous {
					sell()
				}
				end()
				transaction := <-r.begun
				for range c.waiting {
					sell()
				}
				time.Sleep(c.took)
				transaction.answer <- nil
				ended, want := time.Now(), c.waiting
				synctest.Wait()
				if c.pause > 0 || c.waiting == 0 {
					sell()
					want++
				}
				next := <-r.begun
				if n := len(next.batches); n != want || time.Since(ended) != c.pause {
					t.Errorf("%d orders after %v, want %d after %v", n, time.Since(ended), want, c.pause)
				}
				next.answer <- nil
				for _, d := range done {
					r.ended(d, nil)
				}
			})
		})
	}
}

// A batch whose row is locked is committed alone, where it may wait, and delays no other order. No other transaction may wait for a row, also if no
// other order is in it.
func TestLockedBatchGoesOnAlone(t *testing.T) {
	for _, sku := range []string{"a", "redis/a", "conditional/a"} {
		t.Run(sku, func(t *testing.T) {
			bubble(t, byLeaders, func(r *rig) {
				end := r.fill()
				locked, other := r.do(r.Context(), "1", sku), r.do(r.Context(), "2", "for-update/b")
				end()
				c := r.commit("1 | 2")
				c.batches[0].Err = ErrCommitAlone
				c.answer <- nil
				r.ended(other, nil)
				alone := r.commit("1")
				for _, id := range []string{"3", "4"} {
					beside := r.do(r.Context(), id, "for-update/b")
					c := r.commit(id)
					if !c.batches[0].Bounded || alone.batches[0].Bounded {
						r.Errorf("bounded: a lonely order %t, one whose row is locked %t", c.batches[0].Bounded, alone.batches[0].Bounded)
					}
					c.answer <- nil
					r.ended(beside, nil)
				}
				r.waits(locked)
				alone.answer <- nil
				r.ended(locked, nil)
			})
		})
	}
}

// A round whose SKU has a locked row ends for the others. The locked one is committed under another lease.
func TestLockedBatchKeepsNoRound(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		end := r.fill()
		locked, other := r.do(r.Context(), "1", "a"), r.do(r.Context(), "2", "b")
		end()
		one := r.commit("1 | 2")
		one.batches[0].Err = ErrCommitAlone
		one.answer <- nil
		r.ended(other, nil)
		two := r.commit("1")
		r.newer(one, two)
		r.hold("b")() // which is free
		two.answer <- nil
		r.ended(locked, nil)
	})
}

// A transaction that waits, for a row or for a key, does not keep others from theirs.
func TestLongTransactionKeepsNobody(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		end, began := r.fill(), time.Now()
		one, two := r.do(r.Context(), "1", "conditional/a"), r.do(r.Context(), "2", "conditional/b")
		c := r.commit("1 | 2")
		if d := time.Since(began); d != longTransaction {
			r.Errorf("the next transaction began after %v", d)
		}
		end()
		three := r.do(r.Context(), "3", "conditional/c")
		r.nobody() // because the second one is open
		c.answer <- nil
		r.ended(one, nil)
		r.ended(two, nil)
		r.commit("3").answer <- nil
		r.ended(three, nil)
		end = r.fill() // one is open as before, and no more
		waits := r.do(r.Context(), "4", "conditional/a")
		r.nobody()
		end()
		r.commit("4").answer <- nil
		r.ended(waits, nil)
	})
}
