package faults_test

import (
	"maps"
	"sync"

	"example.com/shop/internal/timeout"
)

// tally counts what an instance observes.
type tally struct {
	timeout.NopObserver
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 {
		t.n[what] += n
	}
}

func (t *tally) get(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[what]
}

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.n)
}

func (t *tally) EntriesDropped(_ string, n int) { t.add("dropped", n) }

func (t *tally) Claimed(_ string, n int) { t.add("claimed", n) }

func (t *tally) Settled(_ string, _ timeout.Verdict, n int) { t.add("settled", n) }

func (t *tally) Nacked(_ string, n int) { t.add("nacked", n) }

func (t *tally) Repaired(_ string, why timeout.Reason, n int) { t.add("repaired by "+string(why), n) }

func (t *tally) Failed(_, during string, _ error) { t.add("failed: "+during, 1) }
