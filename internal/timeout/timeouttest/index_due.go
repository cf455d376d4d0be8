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
		for _, s := range b.Shards(b.kind, lane) {
			c, err := b.Claim(b.ctx, s, 100, long)
			if err != nil {
				t.Fatalf("Claim = %v", err)
			}
			now := time.Now()
			if h.Now != nil {
				now = h.Now(t, b.Index) // after the claim, by the same clock
			}
			for _, timer := range c.Timers {
				got[timer.ID] = timer.Due.UnixMilli()
				if timer.Attempt != 1 {
					t.Errorf("%s: attempt %d, want 1", timer.ID, timer.Attempt)
				}
				if c.Now.Before(timer.Due) || now.Before(timer.Due) {
					t.Errorf("%s, due at %v, is lent at %v, and says it is %v", timer.ID, timer.Due, now, c.Now)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moments (-scheduled +lent):\n%s", diff)
	}
}

func pastIsDueAtOnce(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(time.UnixMilli(0), "old")
	b.put(b.now().Add(-time.Minute), "late")
	if got := names(b.claim(10, long)); len(got) != 2 {
		t.Errorf("lent %v, want both", got)
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
		claims := b.claim(3, long)
		for _, c := range claims {
			if c.Due.Before(last[c.shard]) {
				t.Errorf("%v comes after %v", c.Due, last[c.shard])
			}
			last[c.shard] = c.Due
		}
		if n += len(claims); len(claims) == 0 {
			t.Fatalf("%d of %d timers are lent", n, len(ids))
		}
	}
}

func limitIsKept(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), series(200)...)
	for _, limit := range []int{0, 1, 7} {
		for _, s := range b.Shards(b.kind, lane) {
			c, err := b.Claim(b.ctx, s, limit, long)
			if err != nil || len(c.Timers) > limit {
				t.Errorf("%d timers (%v) for limit %d", len(c.Timers), err, limit)
			}
		}
	}
}

func headIsReported(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	id, future := "x", b.now().Add(time.Hour)
	heads := func() (all []time.Time) {
		for _, s := range b.Shards(b.kind, lane) {
			c, err := b.Claim(b.ctx, s, 1, long)
			if err != nil {
				t.Fatal(err)
			}
			if !c.Next.IsZero() {
				all = append(all, c.Next)
			}
		}
		return all
	}
	if got := heads(); len(got) != 0 {
		t.Errorf("next of an empty index is %v", got)
	}
	b.put(future, id)
	if got := heads(); len(got) != 1 || !got[0].Equal(future) {
		t.Errorf("next is %v, want %v", got, future)
	}
	s, err := b.Stats(b.ctx, b.kind, lane)
	if err != nil || !s.Oldest.Equal(future) {
		t.Errorf("oldest is %v (%v), want %v", s.Oldest, err, future)
	}
	// What is lent is not next; what is due and exceeds the limit is.
	b.Remove(b.ctx, b.kind, lane, []string{id})
	past := b.now().Add(-time.Second)
	b.put(past, series(40)...)
	for n := 0; ; {
		claims, next := b.claim(1, long), heads()
		if n += len(claims) + len(b.Shards(b.kind, lane)); n >= 40 || len(claims) == 0 {
			break
		}
		for _, at := range next {
			if !at.Equal(past) {
				t.Fatalf("next is %v, want %v", at, past)
			}
		}
	}
	b.await(40-lentOf(b), long)
	if got := heads(); len(got) != 0 {
		t.Errorf("next is %v, and all timers are lent", got)
	}
}

func lentOf(b bench) int {
	b.t.Helper()
	s, err := b.Stats(b.ctx, b.kind, lane)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Leased
}

func scheduleMoves(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	now := b.now()
	for i, at := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour), now.Add(-time.Second)} {
		n, err := b.Schedule(b.ctx, b.kind, lane, false, []timeout.Hint{{ID: "x", At: at}})
		if want := max(0, 1-i); err != nil || n != want {
			t.Errorf("Schedule = %d, %v; want %d new", n, err, want)
		}
		if s, err := b.Stats(b.ctx, b.kind, lane); err != nil || s.Pending != 1 || !s.Oldest.Equal(at) {
			t.Errorf("Stats = %+v, %v; want one at %v", s, err, at)
		}
	}
	if got := b.claim(10, long); len(got) != 1 || !got[0].Due.Equal(now.Add(-time.Second)) {
		t.Errorf("lent %v, want the last moment", got)
	}
}

func missingLeavesWhatIsThere(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	past, future := b.now().Add(-time.Second), b.now().Add(time.Hour)
	b.put(future, "far")
	b.put(past, "due")
	n, err := b.Schedule(b.ctx, b.kind, lane, true, []timeout.Hint{
		{ID: "far", At: past}, {ID: "due", At: future}, {ID: "new", At: past},
	})
	if err != nil || n != 1 {
		t.Errorf("Schedule = %d, %v; want 1 new", n, err)
	}
	if diff := cmp.Diff([]string{"due", "new"}, names(b.claim(10, long))); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	b.holds(1, 2)
}

func removeLeavesTheLent(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "lent")
	claims := b.await(1, long)
	b.put(b.now(), "pending", "other")
	if err := b.Remove(b.ctx, b.kind, lane, []string{"lent", "pending", "unknown"}); err != nil {
		t.Fatalf("Remove = %v", err)
	}
	b.holds(1, 1)
	if n := b.ack(claims); n != 1 {
		t.Errorf("Ack = %d, want 1: the claim was still there", n)
	}
	if got := names(b.claim(10, long)); len(got) != 1 || got[0] != "other" {
		t.Errorf("lent %v, want the one that was not removed", got)
	}
}
