package permits

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// history is for how many ticks a peak is remembered: about a second.
const history = 10

// recent is the most operations that were in flight within the last second.
func (l *Limiter) recent() int { return slices.Max(l.peaks[:]) }

// steady is the same without the latest half second: of a burst nobody can tell
// yet how large it will be.
func (l *Limiter) steady() int { return slices.Max(l.peaks[history/2:]) }

// tune sets when more is asked for: when half of what would be leased is left.
func (l *Limiter) tune() {
	steady := l.steady()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	if steady == 0 || b.small() || b.live+b.draining >= b.permits || b.alone(time.Now()) {
		l.low.Store(-1)
		return
	}
	l.low.Store(int64(min((steady+3)/4, b.largest(l.cfg.MaxBlock)) / 2))
}

// balance returns what is not needed, or is more than the share while others
// wait, and leases what every instance has.
func (l *Limiter) balance(ctx context.Context) {
	_, used := l.gate.load()
	copy(l.peaks[1:], l.peaks[:])
	l.peaks[0] = max(int(l.peak.Swap(int64(used))), used)
	if time.Now().After(l.prefetchAt) {
		l.asked.Store(false)
	}
	now := time.Now()
	l.mu.Lock()
	b := &l.books
	alone, failing, need := b.alone(now), b.failing, 0
	switch {
	case failing:
	case alone:
		if !now.Before(b.own) {
			b.orphaned = 0
		}
		l.apply(now)
		need = b.room()
	default:
		b.orphaned = 0
		l.apply(now)
		pressed := b.waiters > 0 && !b.waiting || b.held > b.permits
		l.surplus(pressed)
		if pressed {
			l.yield(now)
		}
		if idle := b.permits - b.held; b.waiters == 0 && !b.waiting && b.live < b.reserve() && 4*idle >= b.permits {
			need = b.reserve() - b.live
		}
	}
	l.flush()
	l.mu.Unlock()
	if need > 0 {
		l.lease(ctx, need, 1)
	}
	l.tune()
}

// surplus returns blocks that nobody needed for a second: while others wait, all but what
// was in use. It is called under mu.
func (l *Limiter) surplus(pressed bool) {
	b := &l.books
	recent := l.recent()
	keep := max(b.reserve(), recent+(recent+3)/4)
	if pressed {
		keep = recent
	}
	if b.small() {
		keep = max(recent, b.reserve())
	}
	for bl := range b.blocks {
		if b.live-bl.n >= keep {
			l.giveBack(bl)
		}
	}
}

// yield drains blocks, the smallest first, until this instance has no more than its
// share. What that takes too much comes back by its turn in the queue: as long as
// anybody has less than a share, somebody has more than one. It is called under mu.
func (l *Limiter) yield(now time.Time) {
	b := &l.books
	bySize := func(x, y *block) int { return cmp.Compare(x.n, y.n) }
	for _, bl := range slices.SortedFunc(maps.Keys(b.blocks), bySize) {
		if b.live <= b.share() {
			return
		}
		l.drain(bl, now)
	}
}
