package permits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Start sets the number of permits to Config.Permits, for all instances that share them, and leases the first ones. Call it before Run,
// if there is a store. After an error the number may have changed, and the instance does not know how many share the permits.
func (l *Limiter) Start(ctx context.Context) error {
	if err := l.Resize(ctx, l.cfg.Permits); err != nil {
		return err
	}
	if err := l.call(ctx); err != nil {
		return fmt.Errorf("permits: lease: %w", err)
	}
	return nil
}

// Run keeps the lease of this instance, until ctx ends. Then Take refuses; Run waits for operations in flight, at most
// Config.Drain, gives the permits back and returns nil. Without a client there is no lease: Run waits for ctx only, and
// Take continues. It is called once. It starts no goroutine.
func (l *Limiter) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("permits: Run is called twice")
	}
	l.running = true
	l.mu.Unlock()
	if l.store == nil {
		<-ctx.Done()
		return nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := l.due()
		if wait <= 0 {
			_ = l.call(ctx) // after an error the instance serves its share
			wait = l.due()
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
		}
	}
	l.end(ctx)
	return nil
}

// due returns the time until the next call. If the lease has expired, its permits are gone. A process that was paused wakes up
// with such a lease.
func (l *Limiter) due() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, now := &l.state, time.Now()
	if s.seen && !s.degraded && now.After(s.until) {
		s.lost, s.granted = true, 0
		l.capacity = 0
	}
	if s.lost {
		return 0
	}
	pause := l.every
	if l.pending != nil || s.granted > max(l.capacity, l.used) && !s.degraded {
		pause = l.spacing
	}
	return s.asked.Add(pause).Sub(now)
}

// call renews the lease and asks for what is needed. It blocks at most Config.Timeout.
func (l *Limiter) call(ctx context.Context) error {
	l.mu.Lock()
	f := l.pending
	l.pending = nil
	s := &l.state
	now := time.Now()
	capacity, used := l.capacity, l.used
	needed := l.peak + l.shunned
	l.peak, l.shunned = used, 0
	if f != nil {
		needed += f.waiting
	}
	// The need of a moment counts for a second, so that permits do not go to and fro.
	s.demand = max(float64(needed), s.demand*(1-min(1, now.Sub(s.asked).Seconds())))
	want := min(s.permits, int(math.Ceil(s.demand-0.01)))
	if l.closing {
		want = used
	}
	s.asked, s.want = now, want
	permits, hold := s.permits, l.hold()
	l.mu.Unlock()
	request, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	answer, err := l.store.Renew(request, Renewal{
		Instance: l.id, Held: max(capacity, used), Wanted: want, TTL: l.cfg.TTL, Permits: permits, Hold: hold, Call: l.calls.Add(1),
	})
	if ctx.Err() == nil || err == nil {
		l.answered(ctx, now, answer, err)
	}
	if f == nil {
		return err
	}
	l.mu.Lock()
	if !s.degraded && max(s.granted, s.target) <= capacity {
		s.denied = now.Add(l.spacing)
	}
	l.mu.Unlock()
	close(f.done)
	return err
}

// hold is how long nobody grows if the store has no lease: until the others have called again. It is
// called under mu.
func (l *Limiter) hold() time.Duration {
	if s := &l.state; s.degraded || s.seen && !s.lost {
		return l.cfg.TTL / 2 // the store was away, or has lost its data
	}
	return max(l.every, l.cfg.Timeout) + l.spacing // there may be no others at all: no longer than Take waits
}

// answered applies the answer to a call that was sent at that time.
func (l *Limiter) answered(ctx context.Context, sent time.Time, answer Division, err error) {
	l.mu.Lock()
	s := &l.state
	degraded, changed := err != nil, s.degraded != (err != nil)
	s.degraded, s.lost = degraded, false
	var capacity int
	if degraded {
		if sent.After(s.until) {
			s.granted = 0
		}
		capacity = s.share()
		l.serve() // the next call may take long
	} else {
		s.granted, s.target, s.permits = answer.Granted, answer.Target, answer.Permits
		s.held, s.instances = answer.Held, max(1, answer.Instances)
		s.until, s.seen = sent.Add(l.cfg.TTL*9/10), true
		if time.Now().Before(s.until) { // or the lease has expired during the call
			capacity = min(s.granted, s.target)
		}
	}
	if !l.closing {
		l.capacity = capacity
	}
	l.mu.Unlock() // callers of Take do not wait for OnDegraded
	if changed && l.cfg.OnDegraded != nil {
		l.cfg.OnDegraded(ctx, degraded)
	}
}

// serve ends the wait for the next call. It is called under mu.
func (l *Limiter) serve() {
	if l.pending != nil {
		close(l.pending.done)
		l.pending = nil
	}
}

// share is what an instance serves without the store: at least 1, and exactly 1 if no call has succeeded, which is so only without
// Start.
func (s *state) share() int {
	if !s.seen {
		return 1
	}
	return max(1, s.permits/s.instances)
}

// end lets nobody begin, and returns the permits when the operations have ended.
func (l *Limiter) end(ctx context.Context) {
	l.mu.Lock()
	l.closing = true
	l.capacity = 0
	l.serve()
	l.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	limit := time.NewTimer(l.cfg.Drain)
	defer limit.Stop()
	renew := time.NewTicker(l.every)
	defer renew.Stop()
	for late := false; !late && l.Stats().InUse > 0; {
		select {
		case <-renew.C:
			_ = l.call(ctx) // it is repeated
		case <-l.wake:
		case <-limit.C:
			late = true
		}
	}
	request, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	l.calls.Add(1)
	for l.store.Release(request, l.id) != nil && request.Err() == nil { // otherwise the TTL does it
		time.Sleep(l.cfg.Timeout / 10)
	}
	l.mu.Lock()
	l.state.granted = 0
	l.mu.Unlock()
}
