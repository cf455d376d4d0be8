package order

import (
	"testing"
	"testing/synctest"

	"example.com/shop/internal/stock"
)

// soldOut ends c, in which no order is accepted.
func (c transaction) soldOut() {
	for _, b := range c.batches {
		for _, q := range b.Requests {
			q.Err = &stock.ShortageError{Shortages: []stock.Shortage{{SKU: b.Claims[0].SKU, Requested: 1}}}
		}
	}
	c.answer <- nil
}

// large returns an order of five units of a.
func (r *rig) large(id string) *entry {
	r.Helper()
	e := r.entry(r.Context(), id, "a")
	e.Order.Items[0].Quantity = 5
	return e
}

// While units are short, one read of the level refuses those who were there before it and want more than there is, without a lease. It
// refuses none that came later.
func TestOneReadRefusesThoseWhoWaitedBeforeIt(t *testing.T) {
	bothLeases(t, func(r *rig) {
		first := r.do(r.Context(), "0", "a")
		r.commit("0").soldOut()
		r.ended(first, nil)
		release := r.hold("a")
		before := r.place(r.large("1"))
		read := <-r.reads
		small, large := r.do(r.Context(), "2", "a"), r.place(r.large("3"))
		read <- 2
		r.short(before, 2) // though somebody else has the lease
		r.waits(large)
		release()
		c := r.commit("2 3")
		during := r.do(r.Context(), "4", "a")
		c.soldOut()
		r.ended(small, nil)
		r.ended(large, nil)
		read = <-r.reads // under the lease, before its next transaction, or before the next lease
		read <- 0
		r.short(during, 0)
		again := r.do(r.Context(), "5", "a")
		(<-r.reads) <- 1
		r.commit("5").answer <- nil
		r.ended(again, nil)
		last := r.do(r.Context(), "6", "a") // of which no level is read, because there were units
		r.commit("6").answer <- nil
		r.ended(last, nil)
	})
}

// No read refuses an order whose outcome is unknown, and a read that fails refuses nobody.
func TestNoReadRefusesAnOrderWithUnknownOutcome(t *testing.T) {
	bothLeases(t, func(r *rig) {
		first := r.do(r.Context(), "0", "a")
		r.commit("0").soldOut()
		r.ended(first, nil)
		one := r.do(r.Context(), "1", "a")
		(<-r.reads) <- -1
		c := r.commit("1")
		two := r.do(r.Context(), "2", "a")
		c.answer <- ErrOutcomeUnknown
		read := <-r.reads
		synctest.Wait()
		read <- 0
		r.short(two, 0)
		r.waits(one)
		r.commit("1").answer <- nil
		r.ended(one, nil)
	})
}
