package order

import (
	"testing"
	"time"
)

// The adaptive limit does not count an order that waits for the lease of its SKU, or whose row is locked. It counts it in a transaction,
// and while it waits for one.
func TestQueueTellsWhichOrdersAreBlocked(t *testing.T) {
	bothLeases(t, func(r *rig) {
		var o overload
		place := func(id, sku string) <-chan error {
			e := r.entry(r.Context(), id, sku)
			e.flight = o.enter(false, 10)
			done := r.place(e)
			return done
		}
		counted := func(when string, want int) {
			r.Helper()
			time.Sleep(time.Millisecond)
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.inFlight != want {
				r.Errorf("%s: %d in flight, want %d", when, o.inFlight, want)
			}
		}
		release := r.hold("a")
		one, two := place("1", "a"), place("2", "a")
		counted("another process has the lease", 0)
		release()
		c := r.commit("1 2")
		counted("in a transaction", 2)
		three := place("3", "a")
		counted("for the next transaction", 3)
		c.answer <- nil
		r.ended(one, nil)
		r.ended(two, nil)
		c = r.commit("3")
		c.batches[0].Err = ErrRowSuspect
		c.answer <- nil
		alone := r.commit("3")
		counted("the row is locked", 2) // those that have their answers have not left
		alone.answer <- nil
		r.ended(three, nil)
	})
}
