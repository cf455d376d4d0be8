package order

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// A long transaction does not keep other orders of its SKU either, if they need no lease. If there are more than one transaction has
// room for, the others wait in their lane, and can leave it.
func TestLongTransactionKeepsNobodyOfItsSKU(t *testing.T) {
	const sku = "conditional/a"
	bubble(t, inRounds, func(r *rig) {
		one := r.do(r.Context(), "1", sku)
		long, began := r.commit("1"), time.Now()
		var done []<-chan error
		for n := range maxShared {
			done = append(done, r.do(r.Context(), fmt.Sprint("other", n), sku))
		}
		ctx, giveUp := context.WithCancelCause(r.Context())
		last := r.do(ctx, "last", sku)
		c := <-r.begun
		if d := time.Since(began); d != longTransaction || len(c.batches) != maxShared {
			r.Errorf("%d orders began after %v", len(c.batches), d)
		}
		r.waits(one)
		long.answer <- nil
		r.ended(one, nil)
		if n := r.queue.waitingFor(sku); n != 1 {
			r.Errorf("%d wait, want the last", n)
		}
		giveUp(errGone)
		r.ended(last, errGone)
		if n := r.queue.waitingFor(sku); n != 0 {
			r.Errorf("%d wait, want nobody", n)
		}
		c.answer <- nil
		for _, d := range done {
			r.ended(d, nil)
		}
	})
}

// An order whose long transaction was in vain is tried again, beside those that have not waited for it.
func TestLongTransactionInVainIsRepeated(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		one := r.do(r.Context(), "1", "conditional/a")
		long := r.commit("1")
		two := r.do(r.Context(), "2", "conditional/a")
		c := r.commit("2")
		long.answer <- stock.ErrConflict
		r.waits(one)
		c.answer <- nil
		r.ended(two, nil)
		r.commit("1").answer <- nil
		r.ended(one, nil)
	})
}
