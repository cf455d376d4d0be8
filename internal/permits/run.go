package permits

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// history is for how many ticks a peak is remembered: about a second.
const history = 10

// crowd is the number of permits of the semaphore that counts the instances.
const crowd = 1 << 20

// tick is how often Run looks around.
func (l *Limiter) tick() time.Duration { return max(10*time.Millisecond, l.cfg.TTL/30) }

// Run keeps the blocks: it leases, returns and counts, until ctx ends. Then Take
// refuses; Run waits for operations in flight, at most Config.Drain, gives
// everything back and returns nil. It is called once.
//
// It starts a goroutine for each lease that is given back, and one while the
// instance waits in the queue of the semaphore, and waits for them.
func (l *Limiter) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.books.running {
		l.mu.Unlock()
		return errors.New("permits: Run is called twice")
	}
	l.books.running, l.books.heard = true, time.Now()
	l.mu.Unlock()
	defer l.background.Wait()
	tick := time.NewTicker(l.tick())
	defer tick.Stop()
	var next time.Time // look at the store
	for last := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		if now.Sub(last) > l.cfg.TTL/2 {
			l.slept(last)
		}
		last = now
		if l.sem != nil {
			if !now.Before(next) {
				l.look(ctx)
				next = now.Add(l.pause())
			}
			l.serve(ctx)
		}
		select {
		case <-tick.C:
			if l.sem != nil {
				l.balance(ctx)
			}
		case <-l.wake:
		case <-ctx.Done():
		}
	}
	l.end(ctx)
	l.background.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range l.books.returns { // granted at the last moment
		l.release(ctx, lease)
	}
	return nil
}

// pause is the time between two looks at the store.
func (l *Limiter) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.books.failing {
		return l.cfg.TTL / 12
	}
	return l.cfg.TTL / 4
}

// slept is for a process that was stopped after last: what it lost meanwhile the
// others have, and that is no outage.
func (l *Limiter) slept(last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	for bl := range b.blocks {
		bl.stale = true
	}
	b.orphaned = 0
	if b.settled.Add(-l.settling()).After(last) {
		b.settled = time.Time{}
	}
	l.apply(time.Now())
}

// look asks how many instances there are, and whether any of them waits.
func (l *Limiter) look(ctx context.Context) {
	permits, held, waiters, err := l.usage(ctx, l.cfg.Key)
	if err != nil {
		return
	}
	crowdKey := l.cfg.Key + ":instances"
	joined := l.join(ctx, crowdKey)
	_, instances, _, err := l.usage(ctx, crowdKey)
	if err != nil {
		return
	}
	if !joined {
		instances++
	}
	l.mu.Lock()
	b := &l.books
	b.permits, b.held, b.waiters = permits, held, waiters
	if b.alone(time.Now()) {
		instances = max(instances, b.instances) // the others may not be back yet
	}
	b.instances = max(1, instances)
	for bl := range b.blocks {
		if bl.lease.Err() == nil {
			bl.stale = false
		}
	}
	l.apply(time.Now())
	l.mu.Unlock()
	l.tune()
}

func (l *Limiter) usage(ctx context.Context, key string) (permits, held, waiters int, err error) {
	call, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	l.calls.Add(1)
	permits, held, waiters, err = l.sem.Usage(call, key)
	l.heard(ctx, err)
	return permits, held, waiters, err
}

// join has the instance counted. It reports whether it is.
func (l *Limiter) join(ctx context.Context, key string) bool {
	if l.presence != nil && l.presence.Err() == nil {
		return true
	}
	call, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	l.calls.Add(2)
	err := l.sem.Resize(call, key, crowd)
	if err == nil {
		l.presence, err = l.sem.TryAcquire(call, key, 1)
	}
	if err != nil {
		l.presence = nil
	}
	l.heard(ctx, err)
	return err == nil
}

// recent is the most operations that were in flight within the last second, as
// far as that is over: of a burst nobody can tell yet how large it is.
func (l *Limiter) recent() int { return slices.Max(l.peaks[:]) }

// tune sets when more is asked for: when half of what would be leased is left.
func (l *Limiter) tune() {
	recent := l.recent()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	if recent == 0 || b.small() || b.live+b.draining >= b.permits || b.alone(time.Now()) {
		l.low.Store(-1)
		return
	}
	l.low.Store(int64(min((recent+3)/4, b.largest(l.cfg.MaxBlock)) / 2))
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
		need = b.room()
	default:
		b.orphaned = 0
		l.apply(now)
		pressed := b.waiters > 0 && !b.waiting
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

// surplus returns blocks that nobody needed for a second. It is called under mu.
func (l *Limiter) surplus(pressed bool) {
	b := &l.books
	recent := l.recent()
	keep := max(b.reserve(), recent+(recent+3)/4)
	if pressed && recent == 0 {
		keep = 0
	}
	if b.small() && b.instances > 1 {
		keep = max(recent, b.reserve())
	}
	for bl := range b.blocks {
		if b.live-bl.n >= keep {
			l.giveBack(bl)
		}
	}
}

// yield drains blocks beyond the share of this instance. A block too many goes
// when it is larger than those that make a share now: what is missing then comes
// back in smaller ones. It is called under mu.
func (l *Limiter) yield(now time.Time) {
	b := &l.books
	share, fine := b.share(), b.largest(l.cfg.MaxBlock)
	for bl := range b.blocks {
		if b.live-bl.n >= share || b.live > share+fine && bl.n > fine {
			l.drain(bl, now)
		}
	}
}

// end lets nobody begin, and returns every block when its operations have ended.
func (l *Limiter) end(ctx context.Context) {
	now := time.Now()
	l.mu.Lock()
	b := &l.books
	b.closing = true
	if f := b.pending; f != nil {
		b.pending = nil
		close(f.done)
	}
	l.apply(now)
	for bl := range b.blocks {
		l.drain(bl, now)
	}
	l.flush()
	l.mu.Unlock()
	limit := time.NewTimer(l.cfg.Drain)
	defer limit.Stop()
	for late := false; ; {
		l.mu.Lock()
		returns := b.returns
		b.returns = nil
		if late {
			for _, bl := range b.drains {
				returns = append(returns, bl.lease)
			}
			b.drains, b.draining = nil, 0
		}
		l.mu.Unlock()
		for _, lease := range returns {
			l.release(ctx, lease)
		}
		if _, used := l.gate.load(); late || used == 0 {
			break
		}
		select {
		case <-l.wake:
		case <-limit.C:
			late = true
		}
	}
	if l.presence != nil {
		l.release(ctx, l.presence)
	}
}

// release gives a lease back behind the back of Run.
func (l *Limiter) release(ctx context.Context, lease *dlock.Lease) {
	l.calls.Add(1)
	l.background.Go(func() { lease.Release(ctx) })
}
