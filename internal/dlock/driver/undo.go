package driver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// maxUndo bounds the memory that an outage can cost. The TTL frees the rest.
const maxUndo = 4096

// undoChunk is how many are given back in one call, until it fails.
const undoChunk = 100

// maxUndoCalls bounds the calls in flight: those of what has failed before, and the others.
const maxUndoCalls = 4

// UndoConfig is the configuration of an [Undo].
type UndoConfig struct {
	// TTL is how long the store keeps at most what an attempt took. After that
	// there is nothing left to give back.
	TTL time.Duration

	// Pause is the time between two attempts to give something back. 0 means TTL/20.
	Pause time.Duration

	// Timeout bounds one call of GiveBack. 0 means TTL/3.
	Timeout time.Duration

	// GiveBack frees whatever the owners of held have of their keys, whose tokens
	// are unknown, and tells for each whether there was anything. After an error those
	// that it has found are done, and it is called again for the others, for fewer at a
	// time. It is called concurrently.
	GiveBack func(ctx context.Context, held []dlock.Held) (found []bool, err error)
}

// Undo gives back, in the background, what attempts whose outcome is unknown may
// have taken: it is how a backend keeps the promise of [dlock.ErrUncertain].
//
// It asks until the store has answered, and again if that found nothing: the attempt
// may still be on its way, in the buffers of a connection that was given up. What
// comes later than that, the TTL frees. Calls run beside one another, so that one that
// fails or hangs delays no other; those in a call that failed are asked for in smaller
// ones, less often. There is a timer while there is anything to roll back, and a goroutine
// for each call.
type Undo struct {
	cfg UndoConfig

	mu      sync.Mutex
	queue   []doubt
	calls   int // in flight, of those that have not failed before
	repeats int // in flight, of the others
	timer   *time.Timer
	idle    chan struct{} // closed when all has been given back or has lapsed; nil if there is nothing
}

// doubt is an attempt whose outcome is unknown.
type doubt struct {
	held   dlock.Held
	values context.Context //nolint:containedctx // Never done.
	until  time.Time       // when the TTL has freed it
	next   time.Time       // when to ask for it
	failed int             // calls
	looked bool            // and found nothing, once
}

// NewUndo returns an Undo that has nothing to give back.
func NewUndo(cfg UndoConfig) *Undo {
	cfg.Pause = max(cmp.Or(cfg.Pause, cfg.TTL/20), time.Millisecond)
	cfg.Timeout = cmp.Or(cfg.Timeout, cfg.TTL/3)
	return &Undo{cfg: cfg}
}

// Add has held given back. It takes values from ctx, and nothing else.
func (u *Undo) Add(ctx context.Context, held dlock.Held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= maxUndo {
		return
	}
	now := time.Now()
	u.queue = append(u.queue, doubt{held: held, values: context.WithoutCancel(ctx), until: now.Add(u.cfg.TTL), next: now})
	if u.idle == nil {
		u.idle = make(chan struct{})
	}
	u.dispatch()
}

// Wait blocks until all has been given back or has lapsed, or ctx ends: then it
// returns the error of ctx.
func (u *Undo) Wait(ctx context.Context) error {
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

// dispatch starts the calls that are due, and sees to the next time. It is called under mu.
func (u *Undo) dispatch() {
	now := time.Now()
	u.queue = slices.DeleteFunc(u.queue, func(d doubt) bool { return !now.Before(d.until) })
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
		next := slices.MinFunc(u.queue, func(a, b doubt) int { return a.next.Compare(b.next) }).next
		if !next.After(now) { // it waits for a call to return, or for its end
			next = now.Add(u.cfg.Pause)
		}
		u.timer = time.AfterFunc(time.Until(next), u.again)
	case u.calls+u.repeats == 0 && u.idle != nil:
		close(u.idle)
		u.idle = nil
	}
}

func (u *Undo) again() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dispatch()
}

// due takes out of the queue what one call may ask for now, if another may be made. Those
// that failed equally often are asked for together: fewer each time, until one that
// always fails is alone.
func (u *Undo) due(now time.Time) (chunk []doubt) {
	ready := func(d doubt) bool {
		flying := u.calls
		if d.failed > 0 {
			flying = u.repeats
		}
		return flying < maxUndoCalls && !now.Before(d.next)
	}
	first := slices.IndexFunc(u.queue, ready)
	if first < 0 {
		return nil
	}
	failed := u.queue[first].failed
	size := max(1, undoChunk>>min(3*failed, 8))
	u.queue = slices.DeleteFunc(u.queue, func(d doubt) bool {
		if len(chunk) >= size || d.failed != failed || !ready(d) {
			return false
		}
		chunk = append(chunk, d)
		return true
	})
	return chunk
}

// call asks once, and queues those again that have to be asked for again.
func (u *Undo) call(chunk []doubt, flying *int) {
	held := make([]dlock.Held, len(chunk))
	for i, d := range chunk {
		held[i] = d.held
	}
	ctx, cancel := context.WithTimeout(chunk[0].values, u.cfg.Timeout)
	found, err := u.cfg.GiveBack(ctx, held)
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
