package timeouttest

import (
	"slices"
	"testing"
	"time"
)

// wiped asks every shard.
func (b bench) wiped() (all []bool) {
	b.t.Helper()
	for _, s := range b.Shards(b.kind, partition) {
		c, err := b.Claim(b.ctx, s, 0)
		if err != nil {
			b.t.Fatalf("Claim = %v", err)
		}
		all = append(all, c.Wiped)
	}
	return slices.Compact(all)
}

func (b bench) complete() {
	b.t.Helper()
	if err := b.Complete(b.ctx, b.kind, partition); err != nil {
		b.t.Fatalf("Complete = %v", err)
	}
}

func neverCompleteIsWiped(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	if got := b.wiped(); !slices.Equal(got, []bool{true}) {
		t.Errorf("wiped: %v for an empty index", got)
	}
	b.put(b.now(), series(20)...)
	if got := b.wiped(); !slices.Equal(got, []bool{true}) {
		t.Errorf("wiped: %v for an index that is not complete", got)
	}
}

func completeEndsWiped(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	clients[0].complete()
	for _, b := range clients {
		if got := b.wiped(); !slices.Equal(got, []bool{false}) {
			t.Errorf("wiped: %v for an index that is complete", got)
		}
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
	if got := b.wiped(); !slices.Equal(got, []bool{true}) {
		t.Errorf("wiped: %v for an index that was wiped", got)
	}
	b.holds(0)
	b.put(b.now(), series(20)...)
	b.complete()
	if got := b.wiped(); !slices.Equal(got, []bool{false}) {
		t.Errorf("wiped: %v for an index that is complete again", got)
	}
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
	if got := b.wiped(); !slices.Equal(got, []bool{true}) {
		t.Errorf("wiped: %v for a partition that was dropped", got)
	}
}
