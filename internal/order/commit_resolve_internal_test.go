package order

import (
	"fmt"
	"testing"
	"time"
)

// All orders in flight have an unknown outcome, as after an outage. Their outcomes are looked up in four transactions at once, and other
// orders are placed meanwhile.
func TestUnknownOutcomesLeaveConnectionsToOthers(t *testing.T) {
	bothLeases(t, func(r *rig) {
		const orders = 7
		var all []<-chan error
		for i := range orders {
			all = append(all, r.do(r.Context(), fmt.Sprint(i), "naive/"+fmt.Sprint(i)))
		}
		for range orders {
			c := <-r.begun
			c.answer <- fmt.Errorf("lost: %w", ErrOutcomeUnknown)
		}
		var open []transaction
		for range maxResolving {
			open = append(open, <-r.begun)
		}
		time.Sleep(10 * maxPause) // whoever wants another attempt has begun it
		r.nobody()
		other := r.do(r.Context(), "other", "conditional/o")
		r.commit("other").answer <- nil
		r.ended(other, nil)
		for n := range orders {
			open[n].answer <- nil
			if len(open) < orders {
				open = append(open, <-r.begun)
			}
		}
		for _, done := range all {
			r.ended(done, nil)
		}
	})
}
