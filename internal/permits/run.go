package permits

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/dlock"
)

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
	now := time.Now()
	l.books.running, l.books.heard, l.books.ran = true, now, now
	l.mu.Unlock()
	defer l.background.Wait()
	tick := time.NewTicker(l.tick())
	defer tick.Stop()
	var next time.Time // look at the store
	for ctx.Err() == nil {
		now := time.Now()
		l.ran(now)
		if l.sem != nil {
			if l.look.Swap(false) || !now.Before(next) {
				l.inspect(ctx)
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
	if l.books.alone(time.Now()) {
		return l.cfg.TTL / 12
	}
	return l.cfg.TTL / 4
}

// ran notes that the process runs. What one that was stopped lost meanwhile, the
// others have.
func (l *Limiter) ran(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	if now.Sub(b.ran) > l.cfg.TTL/2 {
		for bl := range b.blocks {
			bl.stale = true
		}
		b.orphaned = 0
		l.apply(now)
	}
	b.ran = now
}

// inspect asks how many instances there are, and whether any of them waits.
func (l *Limiter) inspect(ctx context.Context) {
	permits, held, waiters, err := l.usage(ctx, l.cfg.Key)
	if err != nil {
		return
	}
	l.mu.Lock()
	b := &l.books
	b.permits, b.held, b.waiters = permits, held, waiters
	l.apply(time.Now())
	l.mu.Unlock()
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
	l.background.Go(func() { _ = lease.Release(ctx) }) // what fails the TTL does
}
