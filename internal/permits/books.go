package permits

import (
	"errors"
	"time"

	"example.com/shop/internal/dlock"
)

// block is one lease of the semaphore.
type block struct {
	lease *dlock.Lease
	n     int
	stale bool // this process did not run for a while: others may have the permits, and know it
}

// flight is one request to the store, for everybody who waits when it begins.
type flight struct {
	wanting int
	granted bool
	done    chan struct{} // closed when granted is set
}

// books say what the instance has, what it knows of the others, and what it is
// doing about it. They are guarded by Limiter.mu, as every change of the capacity is.
// Always used <= capacity + draining, except for the operations of blocks that were lost.
type books struct {
	blocks   map[*block]struct{} // that permits are given out of
	live     int                 // their sum
	drains   []*block            // that are given back when their operations have ended
	draining int                 // their sum
	orphaned int                 // permits of blocks that were lost to an outage

	permits, held, waiters, instances int // as last seen

	failing bool      // the last call did not get through
	heard   time.Time // when one last did
	own     time.Time // until when, after an outage, it goes on with what it had and has not leased again
	settled time.Time // until when it does not grow beyond that

	pending *flight        // asked for and not begun
	waiting bool           // in the queue of the semaphore
	denied  time.Time      // until when asking again is idle
	returns []*dlock.Lease // to be released
	ran     time.Time      // when Run last did anything
	running bool
	closing bool
}

// alone reports whether the store is away, or was a moment ago, so that others may
// not have heard of its return.
func (b *books) alone(now time.Time) bool { return b.failing || now.Before(b.settled) }

// share is what every instance may have at least.
func (b *books) share() int { return max(1, b.permits/b.instances) }

// small reports whether there are too few permits to keep any for later.
func (b *books) small() bool { return b.instances > 1 && b.permits < 4*b.instances }

// reserve is what an idle instance keeps, to have something to begin with, and to
// go on with when the store is away.
func (b *books) reserve() int {
	if b.permits < b.instances {
		return 0
	}
	return max(1, b.permits/(16*b.instances))
}

// largest is the size that a block may have. Several of them make a share, so
// that a share can be given back in parts.
func (b *books) largest(limit int) int {
	return max(1, min(b.permits/(4*b.instances), limit))
}

// room is how many permits an instance that is alone may have beside its blocks:
// no more than it had, and no more than its share. Once the store answers it is no
// more than nobody holds either: if it was this instance alone that could not reach
// the store, the others have what it had.
func (b *books) room() int {
	n := min(b.orphaned, b.share()-b.live)
	if !b.failing {
		n = min(n, b.permits-b.held)
	}
	return max(0, n)
}

// outage begins the time after one.
func (b *books) outage(now time.Time, ttl time.Duration) {
	b.own, b.settled = now.Add(ttl+ttl/4), now.Add(ttl+3*ttl/4)
}

// apply makes the capacity what the books say. It is called under mu, as all below.
func (l *Limiter) apply(now time.Time) {
	b := &l.books
	capacity := b.live
	switch {
	case b.closing:
		capacity = 0
	case l.sem == nil:
		capacity = l.cfg.Permits
	case b.alone(now):
		capacity += b.room()
	}
	l.gate.resize(capacity)
	l.watched.Store(b.closing || b.small() || len(b.drains) > 0)
}

// remove takes bl out of what is given out.
func (b *books) remove(bl *block) {
	delete(b.blocks, bl)
	b.live -= bl.n
}

// giveBack returns the block to the store if nobody uses it.
func (l *Limiter) giveBack(bl *block) bool {
	if !l.gate.shrink(bl.n) {
		return false
	}
	l.books.remove(bl)
	l.books.returns = append(l.books.returns, bl.lease)
	return true
}

// drain lets nobody begin with the permits of the block any more.
func (l *Limiter) drain(bl *block, now time.Time) {
	b := &l.books
	b.remove(bl)
	b.drains = append(b.drains, bl)
	b.draining += bl.n
	l.apply(now)
}

// flush returns what has drained to the store.
func (l *Limiter) flush() {
	b := &l.books
	kept := b.drains[:0]
	for _, bl := range b.drains {
		if capacity, used := l.gate.load(); used > capacity+b.draining-bl.n {
			kept = append(kept, bl)
			continue
		}
		b.draining -= bl.n
		b.returns = append(b.returns, bl.lease)
	}
	clear(b.drains[len(kept):])
	b.drains = kept
	l.watched.Store(b.closing || b.small() || len(b.drains) > 0)
}

// settle is what whoever leaves does when blocks drain. It takes mu, as all below.
func (l *Limiter) settle() {
	l.mu.Lock()
	l.flush()
	l.mu.Unlock()
	l.nudge()
}

// leaveWatched ends an operation when the number of permits is small, or blocks
// drain. Of a small number each goes back when its operation ends, so that the
// queue of the semaphore decides who is next, and not who is quickest here.
func (l *Limiter) leaveWatched() {
	l.mu.Lock()
	if bl := l.single(); bl != nil && l.gate.retire() {
		l.books.remove(bl)
		l.books.returns = append(l.books.returns, bl.lease)
	} else {
		l.gate.leave()
	}
	l.flush()
	l.mu.Unlock()
	l.nudge()
}

// single returns a block of one that goes back after its operation, or nil.
func (l *Limiter) single() *block {
	b := &l.books
	if !b.small() || b.closing || b.live <= b.reserve() || b.alone(time.Now()) {
		return nil
	}
	for bl := range b.blocks {
		if bl.n == 1 {
			return bl
		}
	}
	return nil
}

// adopt gives out the permits of a new lease. One that comes at the wrong time,
// at the end or when the instance must not grow, goes back.
func (l *Limiter) adopt(lease *dlock.Lease, n int) {
	now := time.Now()
	l.mu.Lock()
	b := &l.books
	alone := b.alone(now)
	if b.closing || alone && n > b.room() {
		b.returns = append(b.returns, lease)
		l.mu.Unlock()
		l.nudge()
		return
	}
	bl := &block{lease: lease, n: n}
	b.blocks[bl] = struct{}{}
	b.live += n
	b.held += n
	if alone {
		b.orphaned = max(0, b.orphaned-n)
	}
	l.apply(now)
	l.mu.Unlock()
	lease.OnEnd(func(outcome error) {
		if errors.Is(outcome, dlock.ErrLost) {
			l.lost(bl)
		}
	})
}

// lost ends a block whose lease the store may have given to others, or has lost
// itself. Its operations go on; nobody begins one with it. What an instance lost
// that was running all the time, it lost to an outage, as all others did.
func (l *Limiter) lost(bl *block) {
	now := time.Now()
	l.mu.Lock()
	b := &l.books
	if _, ok := b.blocks[bl]; ok {
		b.remove(bl)
		if !bl.stale && now.Sub(b.ran) < l.cfg.TTL/2 {
			b.orphaned += bl.n
			if !b.failing { // soon known: has the store lost it, or only this instance?
				b.outage(now, l.cfg.TTL)
				l.look.Store(true)
			}
		}
	} else {
		for i, other := range b.drains {
			if other == bl {
				b.drains = append(b.drains[:i], b.drains[i+1:]...)
				b.draining -= bl.n
				break
			}
		}
	}
	l.apply(now)
	l.mu.Unlock()
	l.nudge()
}
