package backoff

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Decorrelated spreads attempts over time with decorrelated jitter: each pause is
// random between Min and three times the pause before, and at most Max. The
// first one is short, so that a key that is about to be free changes hands
// quickly; many waiters soon spread out. (M. Brooker, "Exponential Backoff And
// Jitter", 2015.)
type Decorrelated struct {
	Min time.Duration // shortest pause; 0 means 1 ms
	Max time.Duration // longest pause; 0 means 50 ms
}

// Next returns the pause after one of prev, which is 0 before the first one.
func (d Decorrelated) Next(prev time.Duration) time.Duration {
	low := cmp.Or(d.Min, time.Millisecond)
	high := max(low, cmp.Or(d.Max, 50*time.Millisecond))
	prev = max(prev, low)
	return min(high, low+rand.N(3*prev-low+1))
}
