package order

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// An order that cannot be committed fails alone, in error or in panic. The others cost some transactions more: halves of halves.
func TestPoisonCostsOthersARepetition(t *testing.T) {
	const n, bad, most = 100, 37, 2*7 + 1
	for _, sku := range []string{"a", "conditional/a", "conditional/%d"} { // one batch, and orders that share a transaction
		for _, failure := range []string{"error", "panic"} {
			t.Run(sku+" "+failure, func(t *testing.T) {
				bubble(t, inRounds, func(r *rig) {
					calls, committed := new(atomic.Int64), make(map[string]int)
					end, release := r.fill(), r.hold("a")
					r.judge = func(batches []*Batch) error {
						ids := strings.Fields(strings.ReplaceAll(idsOf(batches), "|", ""))
						calls.Add(1)
						switch {
						case slices.Contains(ids, fmt.Sprint(bad)) && failure == "panic":
							panic("poison")
						case slices.Contains(ids, fmt.Sprint(bad)):
							return errPoison
						}
						for _, id := range ids {
							committed[id]++
						}
						return nil
					}
					done := make([]<-chan error, n)
					for i := range done {
						name := sku
						if strings.Contains(sku, "%") {
							name = fmt.Sprintf(sku, i)
						}
						done[i] = r.do(r.Context(), fmt.Sprint(i), name)
					}
					end()
					release()
					for i, d := range done {
						err := <-d
						if failed := err != nil && strings.Contains(err.Error(), "poison"); failed != (i == bad) {
							t.Errorf("%d: %v", i, err)
						}
					}
					if err := r.service.Wait(r.Context()); err != nil {
						t.Error(err)
					}
					for i := range n {
						if want := map[bool]int{false: 1}[i == bad]; committed[fmt.Sprint(i)] != want {
							t.Errorf("%d was committed %d times", i, committed[fmt.Sprint(i)])
						}
					}
					if calls.Load() > most {
						t.Errorf("%d transactions, want %d at most", calls.Load(), most)
					}
				})
			})
		}
	}
}

// An error that is common to all orders is not split: they are not tried one by one.
func TestCommonErrorIsNotSplit(t *testing.T) {
	for _, common := range []error{stock.ErrUnavailable, stock.ErrFencesLost, stock.ErrRowLocked} {
		for _, sku := range []string{"a", "for-update/a"} {
			t.Run(fmt.Sprint(sku, " ", common), func(t *testing.T) {
				bubble(t, inRounds, func(r *rig) {
					end, release := r.fill(), r.hold("a")
					done := r.all(sku, "1", "2", "3", "4")
					end()
					release()
					c := <-r.begun
					if n := len(strings.Fields(strings.ReplaceAll(c.String(), "|", ""))); n != len(done) {
						r.Fatalf("%q are in a transaction", c)
					}
					c.answer <- common
					for _, d := range done {
						r.ended(d, common)
					}
					r.nobody()
				})
			})
		}
	}
}

// Orders whose outcome is unknown, or that were in conflict, are tried again, and not in halves.
func TestRepetitionIsNotSplit(t *testing.T) {
	for _, again := range []error{ErrOutcomeUnknown, stock.ErrConflict} {
		t.Run(again.Error(), func(t *testing.T) {
			bothLeases(t, func(r *rig) {
				release := r.hold("a")
				done := r.all("a", "1", "2", "3", "4")
				release()
				r.commit("1 2 3 4").answer <- again
				r.commit("1 2 3 4").answer <- nil
				for _, d := range done {
					r.ended(d, nil)
				}
			})
		})
	}
}

// An order that has its answer although its transaction has failed for the sake of others is not repeated, and has not failed.
func TestAnsweredOrderIsNotRepeated(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		done := r.all("a", "1", "2", "3")
		release()
		c := r.commit("1 2 3")
		c.batches[0].Requests[0].Answered = true
		c.answer <- dlock.ErrFenced
		c = r.commit("2 3")
		r.ended(done["1"], nil)
		c.batches[0].Requests[0].Answered = true
		c.answer <- stock.ErrUnavailable
		r.ended(done["2"], nil)
		r.ended(done["3"], stock.ErrUnavailable)
	})
}
