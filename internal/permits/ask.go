package permits

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/dlock"
)

// ask joins the next request to the store. It refuses when the answer is known:
// that is what keeps the store out of an overload.
func (l *Limiter) ask() (*flight, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	switch {
	case b.closing:
		return nil, ErrClosed
	case l.sem == nil, b.failing, b.waiting, now.Before(b.denied), b.live+b.draining >= b.permits,
		b.alone(now) && b.room() == 0:
		return nil, l.saturated()
	}
	if b.pending == nil {
		b.pending = &flight{done: make(chan struct{})}
		l.nudge()
	}
	b.pending.wanting++
	return b.pending, nil
}

// serve does what others asked for: it releases what they gave back, and leases
// what they need: no more than that, so that nothing is missing elsewhere when
// there is just enough.
func (l *Limiter) serve(ctx context.Context) {
	l.mu.Lock()
	b := &l.books
	f, returns := b.pending, b.returns
	b.pending, b.returns = nil, nil
	l.mu.Unlock()
	for _, lease := range returns {
		l.release(ctx, lease)
	}
	if f != nil {
		f.granted = l.lease(ctx, f.wanting, 1)
		if !f.granted {
			l.denied(ctx)
		}
		close(f.done)
	} else if l.asked.Load() && time.Now().After(l.prefetchAt) {
		l.prefetchAt = time.Now().Add(l.tick())
		if l.prefetch(ctx) {
			l.prefetchAt = time.Time{}
			l.asked.Store(false)
		}
	}
}

// prefetch leases a quarter more than was in use, while there is plenty. It
// reports whether it did.
func (l *Limiter) prefetch(ctx context.Context) bool {
	permits, held, waiters, err := l.usage(ctx, l.cfg.Key)
	if err != nil || waiters > 0 || 2*(permits-held) < permits {
		return false
	}
	n := min((l.steady()+3)/4, (permits-held)/4)
	return n > 0 && l.lease(ctx, n, n)
}

// lease takes one block of about n permits, and of less down to least when there
// are not as many. It reports whether it got one.
func (l *Limiter) lease(ctx context.Context, n, least int) bool {
	for {
		l.mu.Lock()
		b := &l.books
		n = min(n, b.largest(l.cfg.MaxBlock), b.permits-b.live-b.draining)
		if b.alone(time.Now()) {
			n = min(n, b.room())
		}
		failing := b.failing
		l.mu.Unlock()
		if n < 1 || failing {
			return false
		}
		call, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
		l.calls.Add(1)
		lease, err := l.sem.TryAcquire(call, l.cfg.Key, n)
		cancel()
		l.heard(ctx, err)
		switch {
		case err == nil:
			l.adopt(lease, n)
			l.tune()
			return true
		case !errors.Is(err, dlock.ErrHeld) && !errors.Is(err, dlock.ErrInvalidPermits), n <= least:
			return false
		}
		n /= 2
	}
}

// denied is for an instance that was refused what somebody needs. If it has less
// than its share it queues: nobody passes it, and the others see that one waits.
func (l *Limiter) denied(ctx context.Context) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	pause := l.tick() / 5
	b.denied = now.Add(pause + rand.N(pause))
	short := min(b.share()-b.live-b.draining, b.largest(l.cfg.MaxBlock))
	if short < 1 || b.waiting || b.alone(now) {
		return
	}
	b.waiting = true
	l.background.Go(func() { l.queue(ctx, short) })
}

// queue waits for n permits, for a TTL at most.
func (l *Limiter) queue(ctx context.Context, n int) {
	call, cancel := context.WithTimeout(ctx, l.cfg.TTL)
	defer cancel()
	l.calls.Add(1)
	lease, err := l.sem.Acquire(call, l.cfg.Key, n)
	l.mu.Lock()
	l.books.waiting, l.books.denied = false, time.Time{}
	l.mu.Unlock()
	if err == nil {
		l.adopt(lease, n)
	}
	l.nudge()
}

// heard notes whether a call got through. An outage that can have cost anybody a
// lease is followed by a time in which nobody grows beyond what it had: until all
// have heard that the store is back, a store that has lost its data grants again, and
// what was served without a lease has ended.
func (l *Limiter) heard(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.books
	if err != nil && !errors.Is(err, dlock.ErrHeld) && !errors.Is(err, dlock.ErrInvalidPermits) {
		b.failing = true
		l.apply(now)
		return
	}
	if b.failing {
		b.failing = false
		if now.Sub(b.heard) > l.cfg.TTL/2 {
			b.outage(now, l.cfg.TTL)
		}
		l.apply(now)
	}
	b.heard = now
}
