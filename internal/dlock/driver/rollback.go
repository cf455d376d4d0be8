package driver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// maxUnresolved bounds the memory that an outage can cost. The TTL frees the rest.
const maxUnresolved = 4096

// rollbackChunk is how many are released in one call, until it fails.
const rollbackChunk = 100

// maxRollbackCalls bounds the calls in flight: those of what has failed before, and the others.
const maxRollbackCalls = 4

// RollbackConfig is the configuration of a [Rollback].
type RollbackConfig struct {
	// TTL is how long the store keeps at most what an attempt took. After that
	// there is nothing left to release.
	TTL time.Duration

	// Pause is the time between two attempts to release something. 0 means TTL/20.
	Pause time.Duration

	// Timeout bounds one call of Revert. 0 means TTL/3.
	Timeout time.Duration

	// Revert frees whatever the owners of held have of their keys, whose tokens
	// are unknown, and reports for each whether it had any. After an error, the owners
	// that it has found are done. Rollback calls it again for the others, for fewer owners at a
	// time. Calls run concurrently.
	Revert func(ctx context.Context, held []dlock.Held) (found []bool, err error)
}

// Rollback releases, in the background, what attempts with an unknown outcome may have taken. With it, a backend
// keeps the promise of [dlock.ErrUncertain].
//
// It calls Revert until the store has answered. If that found nothing, it calls Revert once more, because the attempt
// may still be in the buffers of an abandoned connection. The TTL frees anything that arrives even later. Calls run
// concurrently, so a call that fails or hangs delays no other call. After a failure, calls are smaller and less
// frequent. A Rollback has a timer while there is anything to roll back, and a goroutine for each call.
type Rollback struct {
	cfg RollbackConfig

	mu      sync.Mutex
	queue   []unresolved
	calls   int // in flight, of those that have not failed before
	repeats int // in flight, of the others
	timer   *time.Timer
	idle    chan struct{} // closed when all has been released or has expired; nil if there is nothing
}

// unresolved is an attempt whose outcome is unknown.
type unresolved struct {
	held   dlock.Held
	values context.Context //nolint:containedctx // Never done.
	until  time.Time       // when the TTL has freed it
	next   time.Time       // when to ask for it
	failed int             // calls
	looked bool            // and found nothing, once
}

// NewRollback returns a Rollback that has nothing to release.
func NewRollback(cfg RollbackConfig) *Rollback {
	cfg.Pause = max(cmp.Or(cfg.Pause, cfg.TTL/20), time.Millisecond)
	cfg.Timeout = cmp.Or(cfg.Timeout, cfg.TTL/3)
	return &Rollback{cfg: cfg}
}

// Add schedules the release of held. It uses the values of ctx, and ignores its end.
func (u *Rollback) Add(ctx context.Context, held dlock.Held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= maxUnresolved {
		return
	}
	now := time.Now()
	u.queue = append(u.queue, unresolved{held: held, values: context.WithoutCancel(ctx), until: now.Add(u.cfg.TTL), next: now})
	if u.idle == nil {
		u.idle = make(chan struct{})
	}
	u.dispatch()
}

// Now releases what the owner of held has, by one call, and reports whether it had anything.
func (u *Rollback) Now(ctx context.Context, held dlock.Held) (found bool, err error) {
	all, err := u.cfg.Revert(ctx, []dlock.Held{held})
	return err == nil && all[0], err
}

// Wait blocks until all has been released or has expired, or ctx ends: then it
// returns the error of ctx.
func (u *Rollback) Wait(ctx context.Context) error {
	u.mu.Lock()
	idle := u.idle
	u.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return dlock.Ended(ctx)
	}
}

// dispatch starts the calls that are due, and sets the timer for the next ones. It requires mu.
func (u *Rollback) dispatch() {
	now := time.Now()
	u.queue = slices.DeleteFunc(u.queue, func(d unresolved) bool { return !now.Before(d.until) })
	for {
		chunk := u.due(now)
		if len(chunk) == 0 {
			break
		}
		flying := &u.calls
		if chunk[0].failed > 0 {
			flying = &u.repeats
		}
		*flying++
		go u.call(chunk, flying)
	}
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
	switch {
	case len(u.queue) > 0:
		next := slices.MinFunc(u.queue, func(a, b unresolved) int { return a.next.Compare(b.next) }).next
		if !next.After(now) { // it waits for a call to return, or for its end
			next = now.Add(u.cfg.Pause)
		}
		u.timer = time.AfterFunc(time.Until(next), u.again)
	case u.calls+u.repeats == 0 && u.idle != nil:
		close(u.idle)
		u.idle = nil
	}
}

func (u *Rollback) again() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dispatch()
}

// due takes out of the queue what one call may ask for now, if another may be made. Those
// that failed equally often are asked for together: fewer each time, until one that
// always fails is alone.
func (u *Rollback) due(now time.Time) (chunk []unresolved) {
	ready := func(d unresolved) bool {
		flying := u.calls
		if d.failed > 0 {
			flying = u.repeats
		}
		return flying < maxRollbackCalls && !now.Before(d.next)
	}
	first := slices.IndexFunc(u.queue, ready)
	if first < 0 {
		return nil
	}
	failed := u.queue[first].failed
	size := max(1, rollbackChunk>>min(3*failed, 8))
	u.queue = slices.DeleteFunc(u.queue, func(d unresolved) bool {
		if len(chunk) >= size || d.failed != failed || !ready(d) {
			return false
		}
		chunk = append(chunk, d)
		return true
	})
	return chunk
}

// call asks once, and queues those again that have to be asked for again.
func (u *Rollback) call(chunk []unresolved, flying *int) {
	held := make([]dlock.Held, len(chunk))
	for i, d := range chunk {
		held[i] = d.held
	}
	ctx, cancel := context.WithTimeout(chunk[0].values, u.cfg.Timeout)
	found, err := u.cfg.Revert(ctx, held)
	cancel()
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for i, d := range chunk {
		switch {
		case len(found) == len(held) && found[i]:
			continue
		case err != nil || len(found) != len(held):
			d.failed++
		case d.looked:
			continue
		default:
			d.looked, d.failed = true, 0
		}
		if d.next = now.Add(u.cfg.Pause << min(max(0, d.failed-1), 3)); d.next.After(d.until) {
			d.next = d.until
		}
		u.queue = append(u.queue, d)
	}
	*flying--
	u.dispatch()
}
