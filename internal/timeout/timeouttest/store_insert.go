package timeouttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func nowIsWhole(ctx context.Context, t *testing.T, c StoreClient) {
	first := c.now(ctx, t)
	if first.Nanosecond()%int(time.Millisecond) != 0 {
		t.Errorf("now %v has fractions of a millisecond", first)
	}
	c.insert(ctx, t, first, "a")
	_, loaded, err := c.Load(ctx, kind, []string{"a"})
	if err != nil || loaded.Before(first) {
		t.Errorf("load of a timer at %v, %v; it was %v before", loaded, err, first)
	}
	_, loaded, err = c.Load(ctx, kind, []string{"missing"})
	if err != nil || loaded.Before(first) {
		t.Errorf("load of nothing at %v, %v; it was %v before", loaded, err, first)
	}
}

func insertedIsLoaded(ctx context.Context, t *testing.T, c StoreClient) {
	before := c.now(ctx, t)
	due := before.Add(time.Hour)
	timer := timeout.Timer{Kind: kind, ID: "a~!'\"\\%_", Due: due}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if err := c.Insert(ctx, nil, "canary", trace, []timeout.Timer{timer}); err != nil {
		t.Fatal(err)
	}
	got := c.one(ctx, t, timer.ID)
	if after := c.now(ctx, t); got.CreatedAt.Before(before) || got.CreatedAt.After(after) {
		t.Errorf("created at %v, want a moment from %v to %v", got.CreatedAt, before, after)
	}
	same(t, "row", got, timeout.Row{
		Timer: timer, Partition: "canary", State: timeout.Open, Next: due, Trace: trace, CreatedAt: got.CreatedAt,
	})
}

func insertRoundsUp(ctx context.Context, t *testing.T, c StoreClient) {
	whole := c.now(ctx, t).Add(time.Minute)
	c.insert(ctx, t, whole, "whole")
	c.insert(ctx, t, whole.Add(time.Nanosecond), "more")
	same(t, "due on the millisecond", c.one(ctx, t, "whole").Due, whole)
	same(t, "due after it", c.one(ctx, t, "more").Due, whole.Add(time.Millisecond))
	r, err := c.Move(ctx, nil, kind, "whole", whole.Add(time.Nanosecond))
	same(t, "moved after it", r.Due, whole.Add(time.Millisecond))
	if err != nil {
		t.Error(err)
	}
}

func insertAgainReopens(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(-time.Minute), "delayed", "dead")
	c.delay(ctx, t, timeout.Later{ID: "delayed", Due: now, At: now.Add(time.Hour), Attempt: 3, Error: "no"})
	c.markDead(ctx, t, "dead")
	before := c.past(ctx, t, c.now(ctx, t))
	due := now.Add(time.Second)
	again := []timeout.Timer{{Kind: kind, ID: "delayed", Due: due}, {Kind: kind, ID: "dead", Due: due}}
	if err := c.Insert(ctx, nil, "other", "trace", again); err != nil {
		t.Fatal(err)
	}
	for _, timer := range again {
		got := c.one(ctx, t, timer.ID)
		if got.CreatedAt.Before(before) {
			t.Errorf("%s: created at %v, before it was scheduled again at %v", timer.ID, got.CreatedAt, before)
		}
		same(t, timer.ID, got, timeout.Row{
			Timer: timer, Partition: "other", State: timeout.Open, Next: due, Trace: "trace", CreatedAt: got.CreatedAt,
		})
	}
}

func insertMany(ctx context.Context, t *testing.T, c StoreClient) {
	ids := numbered(1234)
	c.insert(ctx, t, c.now(ctx, t), ids...)
	if got := c.load(ctx, t, ids...); len(got) != len(ids) {
		t.Errorf("%d timers of %d are stored", len(got), len(ids))
	}
	n, err := c.Delete(ctx, nil, kind, ids, nil)
	if n != len(ids) || err != nil {
		t.Errorf("deleted %d of %d, %v", n, len(ids), err)
	}
}

func insertTwice(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t)
	c.insertIn(ctx, t, timeout.Base,
		timeout.Timer{Kind: kind, ID: "b", Due: due.Add(time.Hour)},
		timeout.Timer{Kind: kind, ID: "a", Due: due},
		timeout.Timer{Kind: kind, ID: "b", Due: due.Add(time.Minute)})
	same(t, "the last counts", c.one(ctx, t, "b").Due, due.Add(time.Minute))
}

func insertNothing(ctx context.Context, t *testing.T, c StoreClient) {
	if err := c.Insert(ctx, nil, timeout.Base, "", nil); err != nil {
		t.Error(err)
	}
	if n, err := c.Delete(ctx, nil, kind, nil, nil); n != 0 || err != nil {
		t.Errorf("delete of nothing: %d, %v", n, err)
	}
	if err := errors.Join(c.Delay(ctx, kind, nil), c.MarkDead(ctx, kind, nil)); err != nil {
		t.Error(err)
	}
	if rows, now, err := c.Load(ctx, kind, nil); len(rows) != 0 || now.IsZero() || err != nil {
		t.Errorf("load of nothing: %v at %v, %v", rows, now, err)
	}
}

func oddTrace(ctx context.Context, t *testing.T, c StoreClient) {
	for id, trace := range map[string]string{"long": strings.Repeat("x", 4096), "odd": "tracé\xff\x00"} {
		if err := c.Insert(ctx, nil, timeout.Base, trace, []timeout.Timer{{Kind: kind, ID: id}}); err != nil {
			t.Errorf("%s trace: %v", id, err)
		}
	}
}

func rollbackLeavesNothing(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(time.Minute)
	c.insert(ctx, t, due, "kept", "moved")
	change := func(tx Transaction) error {
		err := c.Insert(ctx, tx, timeout.Base, "", []timeout.Timer{{Kind: kind, ID: "new", Due: due}})
		if err != nil {
			return err
		}
		if _, err := c.Delete(ctx, tx, kind, []string{"kept"}, nil); err != nil {
			return err
		}
		_, err = c.Move(ctx, tx, kind, "moved", due.Add(time.Hour))
		return err
	}
	check := func(when string, want map[string]time.Time) {
		t.Helper()
		got := make(map[string]time.Time)
		for id, r := range c.load(ctx, t, "kept", "moved", "new") {
			got[id] = r.Due
		}
		same(t, when, got, want)
	}
	for _, end := range []func(Transaction) error{Transaction.Rollback, Transaction.Commit} {
		tx, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(tx); err != nil {
			t.Fatal(errors.Join(err, tx.Rollback()))
		}
		check("before the end or after a rollback", map[string]time.Time{"kept": due, "moved": due})
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	check("after the commit", map[string]time.Time{"new": due, "moved": due.Add(time.Hour)})
}

func kindsAreDistinct(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(time.Minute)
	c.insert(ctx, t, due, "a", "A")
	c.insertIn(ctx, t, timeout.Base, timeout.Timer{Kind: "other", ID: "a", Due: due}, timeout.Timer{Kind: "Other", ID: "a", Due: due})
	if n, err := c.Delete(ctx, nil, "other", []string{"a", "A"}, nil); n != 1 || err != nil {
		t.Errorf("deleted %d, %v; want 1", n, err)
	}
	if n, err := c.Delete(ctx, nil, kind, []string{"A"}, nil); n != 1 || err != nil {
		t.Errorf("deleted %d, %v; want 1", n, err)
	}
	if rows := c.list(ctx, t, timeout.Filter{}); len(rows) != 2 {
		t.Errorf("left: %v; want 2", rows)
	}
}
