package faults_test

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// skewed is an index whose clock is ahead of the one that it has, or behind if the
// offset is negative. It sends no messages.
type skewed struct {
	timeout.Index
	by time.Duration
}

func skew(by time.Duration) func(timeout.Index) timeout.Index {
	return func(x timeout.Index) timeout.Index { return skewed{x, by} }
}

func (s skewed) Schedule(ctx context.Context, kind, partition string, entries []timeout.Entry) error {
	inner := make([]timeout.Entry, len(entries))
	for i, h := range entries {
		inner[i] = timeout.Entry{ID: h.ID, At: h.At.Add(-s.by)}
	}
	return s.Index.Schedule(ctx, kind, partition, inner)
}

func (s skewed) Claim(ctx context.Context, shard timeout.Shard, limit int) (timeout.Claim, error) {
	c, err := s.Index.Claim(ctx, shard, limit)
	if err != nil {
		return c, err
	}
	c.Now = c.Now.Add(s.by)
	if !c.Next.IsZero() {
		c.Next = c.Next.Add(s.by)
	}
	for i := range c.Timers {
		c.Timers[i].At = c.Timers[i].At.Add(s.by)
	}
	return c, nil
}

func (s skewed) Wake(timeout.Shard) <-chan time.Time { return nil }

// The clock of Redis is wrong. If it is ahead, claims come too early, and no timer fires early. If it
// is behind, the overdue scan fires timers before Redis does.
func TestSkewOfTheRedisClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by   time.Duration
		seen string // what the instances must have had to do
	}{
		"ahead":      {500 * time.Millisecond, "nacked"},
		"far ahead":  {time.Hour, "nacked"},
		"behind":     {-500 * time.Millisecond, "claimed"},
		"far behind": {-time.Hour, "repaired by overdue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			scheduler, _ := w.start(nodeConfig{Name: "scheduler", Canary: true, index: skew(c.by)})
			a, _ := w.start(nodeConfig{Name: "a", index: skew(c.by)})
			late := w.settled(w.load(scheduler, testbedtest.Size(200, 5_000)), scanDelay)
			t.Logf("%v: %v", c.by, a.seen.all())
			if a.seen.get(c.seen) == 0 {
				t.Errorf("nothing was %s: the clock was right", c.seen)
			}
			if c.by < 0 && percentile(late, 100) < min(-c.by, time.Second) {
				t.Error("all orders expired sooner than such a clock allows")
			}
		})
	}
}
