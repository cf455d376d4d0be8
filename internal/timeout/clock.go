package timeout

import "time"

// clock tells when a moment of the index's clock comes here, from the answers to
// claims alone. An answer that says Now was given at Now or later, and was received
// after that: so the index's clock is ahead of ours by at least Now - received, and the
// largest such bound of the last answers is the best one. A moment is therefore
// never awaited too shortly, and too long only by the fastest way back of an answer.
// It counts in monotonic time, so that steps of the wall clock here do not matter.
type clock struct {
	start time.Time // of this process's monotonic clock
	ring  [16]time.Time
	n     int
}

func newClock() *clock { return &clock{start: time.Now()} }

// learn takes the answer now, received at the instant got.
func (c *clock) learn(now, got time.Time) {
	c.ring[c.n%len(c.ring)] = now.Add(-got.Sub(c.start))
	c.n++
}

// zero returns what the index's clock showed at start, by the best bound.
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

// until returns how long it is to a moment of the index's clock.
func (c *clock) until(at time.Time) time.Duration {
	return at.Sub(c.zero()) - time.Since(c.start)
}

// offset returns how far the index's clock is ahead of the wall clock here.
func (c *clock) offset() time.Duration {
	return c.zero().Sub(c.start.Round(0))
}
