package timeouttest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// granted asks for a pass, for an interval.
func (b bench) granted(every time.Duration) bool {
	b.t.Helper()
	granted, err := b.GrantPass(b.ctx, b.kind, partition, every)
	if err != nil {
		b.t.Errorf("GrantPass = %v", err)
	}
	return granted
}

func onePassInEachInterval(t *testing.T, h IndexHarness) {
	const every = 200 * time.Millisecond
	clients := benches(t, h, 4)
	var granted atomic.Int64
	var wg sync.WaitGroup
	for _, b := range clients {
		wg.Go(func() {
			for range 10 {
				if b.granted(time.Hour) {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 1 {
		t.Errorf("%d passes granted at a time, want 1", granted.Load())
	}
	other := clients[0]
	other.kind = clients[0].kind[:20]
	if !other.granted(every) {
		t.Error("no pass granted to another kind")
	}
	if h.Elapse != nil {
		h.Elapse(every)
	}
	for end := time.Now().Add(patient); !other.granted(every); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("no pass granted for %v", patient)
		}
	}
}

func wipedIndexGrantsAPass(t *testing.T, h IndexHarness) {
	if h.Wipe == nil {
		t.Skip("the index cannot forget")
	}
	b := newBench(t, h)
	b.put(b.now(), series(20)...)
	if !b.granted(time.Hour) || b.granted(time.Hour) {
		t.Error("want one pass granted")
	}
	h.Wipe(t, b.Index, b.kind, partition)
	b.holds(0)
	if !b.granted(time.Hour) {
		t.Error("no pass granted by an index that was wiped")
	}
}
