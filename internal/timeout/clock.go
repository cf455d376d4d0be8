package timeout

import "time"

// clock translates moments of the index's clock into local waits, from the replies to claims alone.
// A reply has the index's time Now, and arrives later. So the index's clock is ahead of the local
// one by at least Now minus the time of arrival. The best bound is the largest of the last 16
// replies. A wait is never too short, and too long by the latency of the fastest reply at most.
// It counts in monotonic time, so that steps of the local wall clock do not matter.
type clock struct {
	start time.Time // of this process's monotonic clock
	ring  [16]time.Time
	n     int
}

func newClock() *clock { return &clock{start: time.Now()} }

// learn records that a reply with the time now was received at the instant got.
func (c *clock) learn(now, got time.Time) {
	c.ring[c.n%len(c.ring)] = now.Add(-got.Sub(c.start))
	c.n++
}

// zero returns the index's time at start, by the best bound.
func (c *clock) zero() time.Time {
	if c.n == 0 {
		return c.start
	}
	best := c.ring[0]
	for _, z := range c.ring[1:min(c.n, len(c.ring))] {
		if z.After(best) {
			best = z
		}
	}
	return best
}

// until returns the wait for a moment of the index's clock.
func (c *clock) until(at time.Time) time.Duration {
	return at.Sub(c.zero()) - time.Since(c.start)
}

// offset returns how far the index's clock is ahead of the wall clock here.
func (c *clock) offset() time.Duration {
	return c.zero().Sub(c.start.Round(0))
}
