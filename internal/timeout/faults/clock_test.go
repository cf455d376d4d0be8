package faults_test

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
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

func (s skewed) Schedule(ctx context.Context, kind, lane string, missing bool, hints []timeout.Hint) (int, error) {
	inner := make([]timeout.Hint, len(hints))
	for i, h := range hints {
		inner[i] = timeout.Hint{ID: h.ID, At: h.At.Add(-s.by)}
	}
	return s.Index.Schedule(ctx, kind, lane, missing, inner)
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

// The clock of Redis is wrong. Ahead it lends too early, and nothing happens too early;
// behind it lends too late, and the sweep is there before.
func TestSkewOfTheRedisClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by   time.Duration
		seen string // what the instances must have had to do
	}{
		"ahead":      {500 * time.Millisecond, "returned"},
		"far ahead":  {time.Hour, "returned"},
		"behind":     {-500 * time.Millisecond, "claimed"},
		"far behind": {-time.Hour, "repaired by sweep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			teller, _ := w.start(nodeConfig{Name: "teller", Canary: true, index: skew(c.by)})
			a, _ := w.start(nodeConfig{Name: "a", index: skew(c.by)})
			late := w.settled(w.load(teller, testbedtest.Size(200, 5_000)), swept)
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
