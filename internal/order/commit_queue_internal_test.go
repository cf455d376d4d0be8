package order

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Orders that come during a transaction are in the next one, in the order of their arrival and under the same lease of their leader.
func TestOneLeaseServesSeveralTransactions(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		first := r.do(r.Context(), "1", "a")
		one := r.commit("1")
		rest := r.all("a", "2", "3", "4")
		one.answer <- nil
		r.ended(first, nil)
		two := r.commit("2 3 4")
		if claims := two.batches[0].Claims; one.fence() != two.fence() || len(claims) != 1 || claims[0].SKU != "a" {
			r.Errorf("fence %v and then claims %+v", one.fence(), claims)
		}
		two.answer <- nil
		for _, done := range rest {
			r.ended(done, nil)
		}
	})
}

// After maxBatches transactions, a lease for which somebody else waits is released, although more orders wait.
func TestLeaseEndsAfterItsTransactions(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		r.do(r.Context(), "0", "a")
		one := r.commit("0")
		c := one
		other := r.holdNext("a")
		for n := range maxBatches {
			r.do(r.Context(), fmt.Sprint(n+1), "a")
			c.answer <- nil
			if n < maxBatches-1 {
				if c = r.commit(fmt.Sprint(n + 1)); c.fence() != one.fence() {
					r.Errorf("fence %v in transaction %d, want %v", c.fence(), n+2, one.fence())
				}
			}
		}
		release := <-other
		r.nobody()
		release()
		last := r.commit(fmt.Sprint(maxBatches))
		r.newer(one, last)
		last.answer <- nil
	})
}

// No transaction begins under a lease that is older than maxHold.
func TestLeaseIsBoundedInTime(t *testing.T) {
	bubble(t, byLeaders, func(r *rig) {
		r.do(r.Context(), "1", "a")
		one := r.commit("1")
		r.do(r.Context(), "2", "a")
		time.Sleep(maxHold)
		one.answer <- nil
		two := r.commit("2")
		r.do(r.Context(), "3", "a")
		time.Sleep(time.Nanosecond)
		two.answer <- nil
		three := r.commit("3")
		if one.fence() != two.fence() {
			r.Errorf("fences %v, %v; want one lease for %v", one.fence(), two.fence(), maxHold)
		}
		r.newer(two, three)
		three.answer <- nil
	})
}

// A transaction has at most maxShared orders.
func TestTransactionIsBoundedInOrders(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		done := make(map[string]<-chan error)
		for n := range maxShared + 44 {
			id := fmt.Sprint(n)
			done[id] = r.do(r.Context(), id, "a")
		}
		release()
		for _, want := range []int{maxShared, 44} {
			c := <-r.begun
			if n := len(strings.Fields(c.String())); n != want {
				r.Errorf("%d orders in a transaction, want %d", n, want)
			}
			c.answer <- nil
		}
		for _, d := range done {
			r.ended(d, nil)
		}
	})
}

// A lane that waits for its lease keeps no other SKU waiting.
func TestLaneThatWaitsForItsLeaseKeepsNoOtherSKU(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		waits := r.do(r.Context(), "1", "a")
		for _, sku := range []string{"b", "redis/b", "conditional/b", "optimistic/b"} {
			done := r.do(r.Context(), sku, sku)
			r.commit(sku).answer <- nil
			r.ended(done, nil)
		}
		r.waits(waits)
		release()
		r.commit("1").answer <- nil
		r.ended(waits, nil)
	})
}
