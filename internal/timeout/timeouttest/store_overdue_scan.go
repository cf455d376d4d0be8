package timeouttest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func claimOverdueEarliest(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	c.insert(ctx, t, now.Add(-3*time.Second), "3b", "3a")
	c.insert(ctx, t, now.Add(-5*time.Second), "1")
	c.insert(ctx, t, now.Add(-4*time.Second), "2")
	want := c.load(ctx, t, "1", "2", "3a")
	until := now.Add(30 * time.Second)
	claimed := c.claimOverdue(ctx, t, now, until, 3)
	same(t, "order", idsOf(claimed), []string{"1", "2", "3a"})
	for _, r := range claimed {
		w := want[r.ID]
		w.Attempt = 1
		same(t, "claimed "+r.ID, r, w)
		w.Next = until
		same(t, "stored "+r.ID, c.one(ctx, t, r.ID), w)
	}
	claimed = c.claimOverdue(ctx, t, now, until, 3)
	same(t, "the next overdue scan", idsOf(claimed), []string{"3b"})
}

func claimOverdueKeeps(ctx context.Context, t *testing.T, c StoreClient) {
	before := c.now(ctx, t)
	due := before.Add(-time.Second)
	c.insertIn(ctx, t, timeout.Base,
		timeout.Timer{Kind: kind, ID: "mine", Due: due},
		timeout.Timer{Kind: kind, ID: "edge", Due: before},
		timeout.Timer{Kind: kind, ID: "dead", Due: due},
		timeout.Timer{Kind: "second", ID: "its", Due: due},
		timeout.Timer{Kind: kind[:4], ID: "a", Due: due})
	c.insertIn(ctx, t, "canary", timeout.Timer{Kind: kind, ID: "elsewhere", Due: due})
	c.markDead(ctx, t, "dead")
	claimed := c.claimOverdue(ctx, t, before, before, 100)
	same(t, "claimed", idsOf(claimed), []string{"mine"})
	claimed = c.claimOverdue(ctx, t, before.Add(time.Nanosecond), before.Add(time.Hour), 100)
	same(t, "claimed when it is overdue", idsOf(claimed), []string{"edge", "mine"})
	if attempt := c.one(ctx, t, "mine").Attempt; attempt != 2 {
		t.Errorf("attempt %d, want 2", attempt)
	}
}

func overdueScansClaimOnce(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	ids := numbered(c.many / 5)
	c.insert(ctx, t, now.Add(-time.Minute), ids...)
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				claimed, err := c.ClaimOverdue(ctx, kind, timeout.Base, now, now.Add(time.Hour), 100)
				if err != nil {
					t.Errorf("overdue scan: %v", err)
					return
				}
				mu.Lock()
				all = append(all, idsOf(claimed)...)
				done := len(all) >= len(ids)
				mu.Unlock()
				// An empty overdue scan is not the end: others may have claimed the remaining timers, and release
				// them.
				if done || ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	same(t, "claimed", all, ids)
}

// claimOverdueSkips rows that a handler is working on, and does not wait for it.
func claimOverdueSkips(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	ids := numbered(20)
	c.insert(ctx, t, now.Add(-time.Minute), ids...)
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := c.Delete(ctx, tx, kind, ids[:5], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Move(ctx, tx, kind, ids[7], now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	claimed := c.claimOverdue(ctx, t, now, now.Add(time.Minute), 10)
	same(t, "claimed", idsOf(claimed), slices.Concat(ids[5:7], ids[8:16]))
	// The overdue scan does not keep the rows locked that it claimed and returned.
	if n, err := c.Delete(ctx, nil, kind, ids[8:], nil); n != 12 || err != nil {
		t.Errorf("deleted %d, %v; want 12", n, err)
	}
}
