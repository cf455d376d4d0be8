package timeouttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func deleteCounts(ctx context.Context, t *testing.T, c StoreClient) {
	c.insert(ctx, t, c.now(ctx, t).Add(-time.Minute), "a", "b", "dead")
	c.markDead(ctx, t, "dead")
	for _, want := range []int{2, 0} {
		n, err := c.Delete(ctx, nil, kind, []string{"a", "dead", "a", "missing"}, nil)
		if n != want || err != nil {
			t.Errorf("deleted %d, %v; want %d", n, err, want)
		}
	}
	c.one(ctx, t, "b")
}

func deleteSpares(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(-time.Minute)
	c.insert(ctx, t, due, "same", "delayed")
	c.insert(ctx, t, due.Add(time.Millisecond), "later")
	// A pause after a failure is no later due time.
	c.delay(ctx, t, timeout.Later{ID: "delayed", Due: due, At: due.Add(time.Hour), Attempt: 1})
	// Each has its own due time: that of another timer in the call spares nothing and dooms nothing.
	c.insert(ctx, t, due.Add(time.Second), "last")
	n, err := c.Delete(ctx, nil, kind, []string{"same", "later", "last", "delayed"}, []time.Time{due, due, due.Add(time.Second), due})
	if n != 3 || err != nil {
		t.Errorf("deleted %d, %v; want 3", n, err)
	}
	c.one(ctx, t, "later")
}

func moveGives(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(-time.Minute), "open", "dead")
	c.delay(ctx, t, timeout.Later{ID: "open", Due: now, At: now.Add(time.Minute), Attempt: 3, Error: "no"})
	c.markDead(ctx, t, "dead")
	for _, id := range []string{"open", "dead"} {
		want := c.one(ctx, t, id)
		want.Due, want.Next, want.Attempt, want.State = now.Add(time.Hour), now.Add(time.Hour), 0, timeout.Open
		got, err := c.Move(ctx, nil, kind, id, now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "moved "+id, got, want)
		same(t, "stored "+id, c.one(ctx, t, id), want)
	}
}

func moveSame(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(time.Minute)
	c.insert(ctx, t, due, "a")
	for range 2 {
		if r, err := c.Move(ctx, nil, kind, "a", due); err != nil || !r.Due.Equal(due) {
			t.Errorf("moved to %v, %v; want %v", r.Due, err, due)
		}
	}
}

func moveNothing(ctx context.Context, t *testing.T, c StoreClient) {
	c.insertIn(ctx, t, timeout.Base, timeout.Timer{Kind: "other", ID: "a", Due: c.now(ctx, t)})
	if r, err := c.Move(ctx, nil, kind, "a", c.now(ctx, t)); !errors.Is(err, timeout.ErrNotFound) || r.ID != "" {
		t.Errorf("moved %v, %v; want ErrNotFound", r, err)
	}
}

// overlappingWriters schedule and cancel the same timers in any order at once. Without a transaction of the caller, no
// caller sees how the database resolves the conflict.
func overlappingWriters(ctx context.Context, t *testing.T, c StoreClient) {
	ids := numbered(40)
	due := c.now(ctx, t).Add(-time.Minute)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for range 15 {
				some := make([]string, 20)
				timers := make([]timeout.Timer, 20)
				later := make([]timeout.Later, 20)
				for i := range some {
					some[i] = ids[random.IntN(len(ids))]
					timers[i] = timeout.Timer{Kind: kind, ID: some[i], Due: due}
					later[i] = timeout.Later{ID: some[i], Due: due, At: due, Attempt: 1}
				}
				err := c.Insert(ctx, nil, timeout.Base, "", timers)
				if err == nil {
					err = c.Delay(ctx, kind, later)
				}
				if err == nil {
					_, err = c.Delete(ctx, nil, kind, some, nil)
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := c.Delete(ctx, nil, kind, ids, nil); err != nil {
		t.Error(err)
	}
	same(t, "left", c.load(ctx, t, ids...), map[string]timeout.Row{})
}

func endedContext(ctx context.Context, t *testing.T, c StoreClient) {
	cause := errors.New("the caller has left")
	ended, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	if err := c.Insert(ended, nil, timeout.Base, "", []timeout.Timer{{Kind: kind, ID: "a"}}); !errors.Is(err, cause) {
		t.Errorf("insert: %v, want the cause", err)
	}
	if _, err := c.List(ended, timeout.Filter{}); !errors.Is(err, cause) || errors.Is(err, timeout.ErrUnavailable) {
		t.Errorf("list: %v, want the cause, and nobody to blame", err)
	}
	same(t, "stored", c.load(ctx, t, "a"), map[string]timeout.Row{})
}

func pauseIsKept(ctx context.Context, t *testing.T, c StoreClient) {
	for i, step := range []struct {
		kind   string
		paused bool
		want   []string
	}{
		{"b", true, []string{"b"}},
		{"b", true, []string{"b"}},
		{"a", true, []string{"a", "b"}},
		{"c", false, []string{"a", "b"}},
		{"b", false, []string{"a"}},
	} {
		if err := c.SetPaused(ctx, step.kind, step.paused); err != nil {
			t.Fatal(err)
		}
		got, err := c.Paused(ctx)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("paused after step %d", i), got, step.want)
	}
}
