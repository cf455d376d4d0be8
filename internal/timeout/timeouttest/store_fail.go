package timeouttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/shop/internal/timeout"
)

// delayRecords more failures than one statement takes, each with values of its own.
func delayRecords(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(-time.Minute)
	ids := numbered(257)
	c.insert(ctx, t, due, append(ids, "other")...)
	want := c.load(ctx, t, append(ids, "other")...)
	later := make([]timeout.Later, len(ids))
	for i, id := range ids {
		at := due.Add(time.Duration(i) * time.Second)
		later[len(ids)-1-i] = timeout.Later{ID: id, Due: due, At: at, Attempt: i, Error: "failure " + id}
		r := want[id]
		r.Next, r.Attempt, r.LastError = at, i, "failure "+id
		want[id] = r
	}
	if err := c.Delay(ctx, kind, append(later, timeout.Later{ID: "missing", At: due})); err != nil {
		t.Fatal(err)
	}
	same(t, "rows", c.load(ctx, t, append(ids, "other", "missing")...), want)
}

func markDeadEnds(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(-time.Minute), "a", "b")
	want := c.load(ctx, t, "a", "b")
	c.markDead(ctx, t, "a")
	r := want["a"]
	r.State, r.Attempt, r.LastError = timeout.Dead, 10, "hopeless"
	want["a"] = r
	same(t, "rows", c.load(ctx, t, "a", "b"), want)
	claimed := c.claimOverdue(ctx, t, now, now, 10)
	same(t, "claimed", idsOf(claimed), []string{"b"})
}

func failuresSpareMoved(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(time.Hour), "a", "b")
	want := c.load(ctx, t, "a", "b")
	c.delay(ctx, t, timeout.Later{ID: "a", Due: now, At: now, Attempt: 2, Error: "no"})
	c.markDead(ctx, t, "b")
	same(t, "rows", c.load(ctx, t, "a", "b"), want)
}

// failuresSpareDueAgain: that a timer is due does not say that it failed. Each is compared
// with the due time that it was handled with, and with no other of the call.
func failuresSpareDueAgain(ctx context.Context, t *testing.T, c StoreClient) {
	before := c.now(ctx, t).Add(-time.Minute)
	again := before.Add(time.Millisecond)
	for name, fail := range map[string]func(context.Context, string, []timeout.Later) error{"delay": c.Delay, "mark dead": c.MarkDead} {
		ids := []string{name + "-again", name + "-failed", name + "-late"}
		c.insert(ctx, t, again, ids[0], ids[2])
		c.insert(ctx, t, before, ids[1])
		want := c.load(ctx, t, ids[0])
		err := fail(ctx, kind, []timeout.Later{
			{ID: ids[2], Due: again, At: again, Attempt: 2, Error: "no"},
			{ID: ids[0], Due: before, At: again.Add(time.Hour), Attempt: 2, Error: "no"},
			{ID: ids[1], Due: before, At: again, Attempt: 2, Error: "no"},
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, name+" of what is due again", c.load(ctx, t, ids[0]), want)
		for _, id := range ids[1:] {
			if r := c.one(ctx, t, id); r.Attempt != 2 || r.LastError != "no" {
				t.Errorf("%s: %+v, want a failure", id, r)
			}
		}
	}
}

func failuresSpareDead(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(-time.Minute), "a")
	c.markDead(ctx, t, "a")
	want := c.load(ctx, t, "a")
	later := []timeout.Later{{ID: "a", Due: now, At: now, Attempt: 1, Error: "late"}}
	if err := c.Delay(ctx, kind, later); err != nil {
		t.Fatal(err)
	}
	if err := c.MarkDead(ctx, kind, later); err != nil {
		t.Fatal(err)
	}
	same(t, "rows", c.load(ctx, t, "a"), want)
}

func longError(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	texts := map[string]string{
		"one byte":    strings.Repeat("x", 70_000),
		"two bytes":   strings.Repeat("ü", 70_000),
		"shifted":     "x" + strings.Repeat("ü", 70_000),
		"three bytes": strings.Repeat("字", 70_000),
		"four bytes":  "x" + strings.Repeat("😀", 70_000),
		"broken":      "\xff\xfe broken \x80\x00",
	}
	i := 0
	for name, text := range texts {
		i++
		id := fmt.Sprintf("t%d", i)
		c.insert(ctx, t, now.Add(-time.Minute), id)
		if err := c.Delay(ctx, kind, []timeout.Later{{ID: id, Due: now, At: now, Error: text}}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := c.one(ctx, t, id).LastError
		if !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: stored as %q", name, got)
		}
		if name != "broken" && (!strings.HasPrefix(text, got) || len(got) < 500) {
			t.Errorf("%s: %d bytes are stored, and they begin %.20q", name, len(got), got)
		}
	}
}

func redriveByID(ctx context.Context, t *testing.T, c StoreClient) {
	before := c.now(ctx, t)
	c.insert(ctx, t, before.Add(-time.Minute), "a", "b", "open")
	c.markDead(ctx, t, "a", "b")
	want := c.load(ctx, t, "a")["a"]
	before = c.past(ctx, t, before)
	got, err := c.Redrive(ctx, kind, []string{"a", "a", "open", "missing"})
	if err != nil || len(got) != 1 {
		t.Fatalf("redriven: %v, %v; want 1 timer", got, err)
	}
	if due := got[0].Due; due.Before(before) || due.After(c.now(ctx, t)) {
		t.Errorf("due at %v, want a moment since %v", due, before)
	}
	want.Due, want.Next, want.State, want.Attempt = got[0].Due, got[0].Due, timeout.Open, 0
	same(t, "redriven", got[0], want)
	same(t, "stored", c.one(ctx, t, "a"), want)
	if state := c.one(ctx, t, "b").State; state != timeout.Dead {
		t.Errorf("b is %v, want dead", state)
	}
}

// redriveMany takes more than one statement does, and leaves a kind of the same names alone.
func redriveMany(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(-time.Minute)
	ids := numbered(257)
	c.insert(ctx, t, due, append(ids, "open")...)
	c.markDead(ctx, t, ids...)
	c.insertIn(ctx, t, timeout.Base, timeout.Timer{Kind: "other", ID: ids[0], Due: due})
	if err := c.MarkDead(ctx, "other", []timeout.Later{{ID: ids[0], Due: due}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{ids, nil} {
		got, err := c.Redrive(ctx, kind, append(ids, "open"))
		if err != nil {
			t.Fatal(err)
		}
		redriven := idsOf(got)
		slices.Sort(redriven)
		same(t, "redriven", redriven, want)
	}
	if got, err := c.Redrive(ctx, kind, nil); len(got) != 0 || err != nil {
		t.Errorf("Redrive of nothing: %v, %v", got, err)
	}
	if dead := c.list(ctx, t, timeout.Filter{State: timeout.Dead}); len(dead) != 1 || dead[0].Kind != "other" {
		t.Errorf("dead: %+v, want that of the other kind", dead)
	}
}
