package timeouttest

import (
	"testing"
	"time"
)

// isWiped checks what every shard reports.
func (b bench) isWiped(want bool, when string) {
	b.t.Helper()
	for _, s := range b.Shards(b.kind, partition) {
		if got := b.ask(s, 0).Wiped; got != want {
			b.t.Errorf("shard %d reports wiped %v for %s", s.N, got, when)
		}
	}
}

func (b bench) complete() {
	b.t.Helper()
	if err := b.Complete(b.ctx, b.kind, partition); err != nil {
		b.t.Fatalf("Complete = %v", err)
	}
}

func neverCompleteIsWiped(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.isWiped(true, "an empty index")
	b.put(b.now(), series(20)...)
	b.isWiped(true, "an index that is not complete")
}

func completeEndsWiped(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	clients[0].complete()
	for _, b := range clients {
		b.isWiped(false, "an index that is complete")
	}
}

func wipeIsNoticed(t *testing.T, h IndexHarness) {
	if h.Wipe == nil {
		t.Skip("the index cannot forget")
	}
	b := newBench(t, h)
	b.complete()
	b.put(b.now(), series(20)...)
	h.Wipe(t, b.Index, b.kind, partition)
	b.isWiped(true, "an index that was wiped")
	b.holds(0)
	b.put(b.now(), series(20)...)
	b.complete()
	b.isWiped(false, "an index that is complete again")
	b.holds(20)
}

func dropIsAWipe(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	b := clients[1]
	b.complete()
	b.put(b.now(), series(20)...)
	b.put(b.now().Add(time.Hour), series(40)...)
	b.holds(40)
	if err := b.Drop(b.ctx, b.kind, "other"); err != nil {
		t.Fatal(err)
	}
	b.holds(40)
	for range 2 { // the second one finds nothing
		if err := clients[0].Drop(b.ctx, b.kind, partition); err != nil {
			t.Fatal(err)
		}
	}
	b.holds(0)
	b.isWiped(true, "a partition that was dropped")
}
