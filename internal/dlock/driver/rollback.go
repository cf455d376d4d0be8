package driver

import (
	"cmp"
	"context"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// maxUnresolved bounds the memory that an outage can cost. The TTL frees the rest.
const maxUnresolved = 4096

// maxTTLs is how many TTLs of an outage a Rollback outlasts. If the store executes an attempt after that, the TTL of
// what it takes adds a tenth to the outage at most.
const maxTTLs = 10

// Bounds of the calls in flight: for attempts whose last call failed, and for the others.
const (
	maxFailedCalls = 16
	maxFreshCalls  = 64
)

// RollbackConfig is the configuration of a [Rollback].
type RollbackConfig struct {
	// TTL is how long the store keeps at most what an attempt took.
	TTL time.Duration

	// Pause is the time between two calls of Revert for the same attempt. 0 means TTL/20. Failed calls are up to four
	// times as far apart, from start to start.
	Pause time.Duration

	// Timeout bounds one call of Revert. 0 means TTL/3.
	Timeout time.Duration

	// Revert frees whatever the owner of held has of its key, whose token is unknown, and reports whether it had
	// anything. Calls run concurrently.
	Revert func(ctx context.Context, held dlock.Held) (found bool, err error)
}

// Rollback releases, in the background, what attempts with an unknown outcome may have taken. With it, a backend
// keeps the promise of [dlock.ErrUncertain].
//
// It calls Revert until the store has answered. If that found nothing, it calls Revert once more, because the attempt
// may still be in the buffers of an abandoned connection. The TTL frees anything that arrives even later. After a
// failure, calls are less frequent, and leave room for the calls of other attempts: dozens that fail or hang delay no
// other.
//
// A paused store executes the attempt when it resumes, so a Rollback continues for ten TTLs. A call that hung for four
// pauses or longer is repeated at once: the next one is on its way when the store resumes. A Rollback has a goroutine
// for each attempt, which ends after ten TTLs at the latest.
type Rollback struct {
	cfg           RollbackConfig
	fresh, failed chan struct{} // has an element for each call in flight
	resolving     Background
	over          chan struct{} // closed a TTL after Close has been called
	end           func()
}

// NewRollback returns a Rollback that has nothing to release.
func NewRollback(cfg RollbackConfig) *Rollback {
	cfg.Pause = max(cmp.Or(cfg.Pause, cfg.TTL/20), time.Millisecond)
	cfg.Timeout = cmp.Or(cfg.Timeout, cfg.TTL/3)
	over := make(chan struct{})
	return &Rollback{
		cfg: cfg, fresh: make(chan struct{}, maxFreshCalls), failed: make(chan struct{}, maxFailedCalls),
		over: over, end: sync.OnceFunc(func() { close(over) }),
	}
}

// Add schedules the release of held. It uses the values of ctx, and ignores its end.
func (u *Rollback) Add(ctx context.Context, held dlock.Held) {
	u.resolving.Go(maxUnresolved, func() { u.resolve(context.WithoutCancel(ctx), held) })
}

// Now releases what the owner of held has, by one call, and reports whether it had anything.
func (u *Rollback) Now(ctx context.Context, held dlock.Held) (found bool, err error) {
	return u.cfg.Revert(ctx, held)
}

// Close blocks until all has been released, or for a TTL and a call, or until ctx ends: then it returns the error of
// ctx. After that TTL, the Rollback gives up.
func (u *Rollback) Close(ctx context.Context) error {
	time.AfterFunc(u.cfg.TTL, u.end)
	return u.resolving.Wait(ctx)
}

// resolve calls Revert until held is released.
func (u *Rollback) resolve(ctx context.Context, held dlock.Held) {
	ctx, cancel := context.WithTimeout(ctx, maxTTLs*u.cfg.TTL)
	defer cancel()
	looked, failures := false, 0
	for calls := u.fresh; ; {
		select {
		case calls <- struct{}{}:
		case <-u.over:
			return
		case <-ctx.Done():
			return
		}
		began, pause := time.Now(), u.cfg.Pause
		call, stop := context.WithTimeout(ctx, u.cfg.Timeout)
		found, err := u.cfg.Revert(call, held)
		stop()
		<-calls
		switch {
		case err != nil:
			calls = u.failed
			pause = pause<<min(failures, 2) - time.Since(began)
			failures++
		case found || looked:
			return
		default:
			calls = u.fresh
			looked, failures = true, 0
		}
		select {
		case <-time.After(max(pause, 1)): // one of 0 fires in its caller, where the race detector and synctest crash
		case <-u.over:
			return
		case <-ctx.Done():
			return
		}
	}
}
