package timeouttest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func (c StoreClient) beat(ctx context.Context, t *testing.T, partition, instance string) {
	t.Helper()
	if err := c.Heartbeat(ctx, partition, instance); err != nil {
		t.Fatalf("beat: %v", err)
	}
}

func (c StoreClient) reassign(ctx context.Context, t *testing.T, silent time.Duration, limit, want int) {
	t.Helper()
	if n, err := c.Reassign(ctx, silent, limit); n != want || err != nil {
		t.Errorf("reassigned %d, %v; want %d", n, err, want)
	}
}

func (c StoreClient) partitions(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	partitions := make(map[string]string)
	for _, r := range c.list(ctx, t, timeout.Filter{}) {
		partitions[r.ID] = r.Partition
	}
	return partitions
}

func reassignOrphaned(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(time.Hour)
	for id, partition := range map[string]string{"old": timeout.Base, "alive": "canary", "left": "gone", "never": "unknown"} {
		c.insertIn(ctx, t, partition, timeout.Timer{Kind: kind, ID: id, Due: due})
	}
	want := c.load(ctx, t, "left")["left"]
	want.Partition = timeout.Base
	// An instance that comes and goes does not make the others of its partition silent.
	c.beat(ctx, t, "gone", "one")
	c.beat(ctx, t, "canary", "one")
	c.beat(ctx, t, "canary", "two")
	c.reassign(ctx, t, time.Hour, 100, 1)
	same(t, "partitions", c.partitions(ctx, t), map[string]string{
		"old": timeout.Base, "alive": "canary", "left": "gone", "never": timeout.Base,
	})
	const silent = 500 * time.Millisecond
	first := c.now(ctx, t)
	c.past(ctx, t, first.Add(2*silent))
	before := c.now(ctx, t)
	c.beat(ctx, t, "canary", "two")
	if _, err := c.Reassign(ctx, silent, 100); err != nil {
		t.Fatal(err)
	}
	// On a machine that was paused between the beat and here, the partition was silent.
	if partition := c.one(ctx, t, "alive").Partition; partition != "canary" && c.now(ctx, t).Sub(before) < silent {
		t.Errorf("the timer of a partition that is alive is in %s", partition)
	}
	same(t, "the reassigned timer", c.one(ctx, t, "left"), want)
}

func reassignLimit(ctx context.Context, t *testing.T, c StoreClient) {
	var timers []timeout.Timer
	for _, id := range numbered(700) {
		timers = append(timers, timeout.Timer{Kind: kind, ID: id}, timeout.Timer{Kind: "other", ID: id})
	}
	c.insertIn(ctx, t, "gone", timers...)
	for _, want := range []int{1000, 400, 0} {
		c.reassign(ctx, t, time.Minute, 1000, want)
	}
	c.counts(ctx, t, map[timeout.Shard]map[timeout.State]int{
		{Kind: kind, Partition: timeout.Base}:    {timeout.Open: 700},
		{Kind: "other", Partition: timeout.Base}: {timeout.Open: 700},
	})
}

func reassignSparesDead(ctx context.Context, t *testing.T, c StoreClient) {
	c.insertIn(ctx, t, "gone", timeout.Timer{Kind: kind, ID: "dead", Due: c.now(ctx, t).Add(-time.Minute)})
	c.markDead(ctx, t, "dead")
	c.reassign(ctx, t, time.Minute, 100, 0)
	c.insertIn(ctx, t, "gone", timeout.Timer{Kind: kind, ID: "open"})
	c.reassign(ctx, t, time.Minute, 1, 1) // nor do they stand in the way
	if _, err := c.Redrive(ctx, kind, []string{"dead"}); err != nil {
		t.Fatal(err)
	}
	c.reassign(ctx, t, time.Minute, 100, 1)
}
