package timeouttest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/timeout"
)

func neverEarly(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	start, ids := b.now(), series(100)
	want := map[string]int64{}
	for i, id := range ids {
		at := start.Add(time.Duration(5*i) * time.Millisecond)
		b.put(at, id)
		want[id] = at.UnixMilli()
	}
	got := map[string]int64{}
	for end := time.Now().Add(patient); len(got) < len(ids) && time.Now().Before(end); time.Sleep(pause) {
		for _, s := range b.Shards(b.kind, partition) {
			c := b.ask(s, 100)
			now := time.Now()
			if h.Now != nil {
				now = h.Now(t, b.Index) // after the claim, by the same clock
			}
			for _, timer := range c.Timers {
				got[timer.ID] = timer.At.UnixMilli()
				if c.Now.Before(timer.At) || now.Before(timer.At) {
					t.Errorf("%s, due at %v, is claimed at %v, and says it is %v", timer.ID, timer.At, now, c.Now)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moments (-scheduled +claimed):\n%s", diff)
	}
}

func pastIsDueAtOnce(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(time.UnixMilli(0), "old")
	b.put(b.now().Add(-time.Minute), "late")
	if got := names(b.claim(10)); len(got) != 2 {
		t.Errorf("claimed %v, want both", got)
	}
}

func earliestFirst(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	past, ids := b.now().Add(-time.Hour), series(60)
	for i, id := range ids {
		b.put(past.Add(-time.Duration(i)*time.Second), id)
	}
	last := map[timeout.Shard]time.Time{}
	for n := 0; n < len(ids); {
		claims := b.claim(3)
		for _, c := range claims {
			if c.At.Before(last[c.shard]) {
				t.Errorf("%v comes after %v", c.At, last[c.shard])
			}
			last[c.shard] = c.At
		}
		if n += len(claims); len(claims) == 0 {
			t.Fatalf("%d of %d timers are claimed", n, len(ids))
		}
	}
}

func limitIsKept(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), series(200)...)
	for _, limit := range []int{0, 1, 7} {
		for _, s := range b.Shards(b.kind, partition) {
			if c := b.ask(s, limit); len(c.Timers) > limit {
				t.Errorf("%d timers for limit %d", len(c.Timers), limit)
			}
		}
	}
}

func headIsReported(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	id, future := "x", b.now().Add(time.Hour)
	if got := b.next(); len(got) != 0 {
		t.Errorf("next of an empty index is %v", got)
	}
	b.put(future, id)
	if got := b.next(); len(got) != 1 || !got[0].Equal(future) {
		t.Errorf("next is %v, want %v", got, future)
	}
	// A claimed timer is not next; a due timer that exceeds the limit is.
	past := b.now().Add(-time.Second)
	b.put(past, id)
	b.await(1)
	b.put(past, series(40)...)
	for n := len(b.claim(1)); n < 40; n += len(b.claim(1)) {
		next := b.next()
		if len(next) == 0 {
			t.Fatalf("nothing is next after %d of 40", n)
		}
		for _, at := range next {
			if !at.Equal(past) {
				t.Fatalf("next is %v, want %v", at, past)
			}
		}
	}
	if got := b.next(); len(got) != 0 {
		t.Errorf("next is %v, and all timers are claimed", got)
	}
}

func earlierMomentIsKept(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	now := b.now()
	far := now.Add(time.Hour)
	for _, c := range []struct{ at, want time.Time }{
		{far, far}, {now.Add(2 * time.Hour), far}, {far.Add(-time.Minute), far.Add(-time.Minute)}, {now.Add(-time.Second), now.Add(-time.Second)},
	} {
		b.put(c.at, "x")
		if got := b.next(); len(got) != 1 || !got[0].Equal(c.want) {
			t.Errorf("next is %v, want %v alone", got, c.want)
		}
	}
	if got := b.claim(10); len(got) != 1 || !got[0].At.Equal(now.Add(-time.Second)) {
		t.Errorf("claimed %v, want the earliest moment", got)
	}
}
