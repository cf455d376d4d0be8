package dlocktest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

// CheckFences fails the test if the tokens of a lock, or of the writers of a read/write lock, do not grow. A token that
// was requested after another one was granted must be greater, and no token may repeat. Check checks this and more, and
// may be wrong on a machine that was paused. CheckFences uses the order of events alone, and is final.
func (h *History) CheckFences(t testing.TB) {
	t.Helper()
	const most = 5 // more would say no more
	all := h.disorder()
	for _, v := range all[:min(len(all), most)] {
		testbedtest.Final(t, "%s", v)
	}
}

// disorder returns the tokens that are not in order, in words.
func (h *History) disorder() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type name struct {
		key   string
		token uint64
	}
	given := map[name]string{}      // owners of exclusive grants
	greatest := map[string]uint64{} // by key, of the grants that had been made
	asked := slices.DeleteFunc(slices.Clone(h.events), func(e *event) bool { return !e.granted() })
	made := slices.SortedFunc(slices.Values(asked), func(a, b *event) int { return cmp.Compare(a.to, b.to) })
	for _, e := range asked { // events are in the order of from
		for ; len(made) > 0 && made[0].to < e.from; made = made[1:] {
			before := made[0]
			greatest[before.call.Key] = max(greatest[before.call.Key], before.outcome.Fence.Token)
		}
		if !e.exclusive() {
			continue
		}
		f := e.outcome.Fence
		if last := greatest[e.call.Key]; f.Token <= last {
			all = append(all, fmt.Sprintf("%s: token %d of %s, asked for at %v, when %d had been granted",
				e.call.Key, f.Token, f.Owner, e.from.Round(time.Microsecond), last))
		}
		if other, twice := given[name{e.call.Key, f.Token}]; twice {
			all = append(all, fmt.Sprintf("%s: token %d of %s and of %s", e.call.Key, f.Token, other, f.Owner))
		}
		given[name{e.call.Key, f.Token}] = f.Owner
	}
	return all
}

// exclusive says that a grant is not that of a reader.
func (e *event) exclusive() bool { return !e.by.share || e.call.N == RWPermits }
