package dlock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// maxUndo bounds the memory that an outage can cost. The TTL frees the rest.
const maxUndo = 4096

// undoChunk is how many are given back in one call.
const undoChunk = 100

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
	// are unknown, and tells for each whether there was anything. After an error it
	// is called again for all of them.
	GiveBack func(ctx context.Context, held []Held) (found []bool, err error)
}

// Undo gives back, in the background, what attempts whose outcome is unknown may
// have taken: it is how a backend keeps the promise of [ErrUncertain].
//
// It asks until the store has answered, and again if that found nothing: the attempt
// may still be on its way, in the buffers of a connection that was given up. What
// comes later than that, the TTL frees. One goroutine does it all; it begins with
// the first call of Add, and ends when there is nothing left to give back.
type Undo struct {
	cfg UndoConfig

	mu    sync.Mutex
	queue []doubt
	idle  chan struct{} // closed when the goroutine has ended; nil if none runs
}

// doubt is an attempt whose outcome is unknown.
type doubt struct {
	held   Held
	until  time.Time
	looked bool // and found nothing, once
}

// NewUndo returns an Undo that has nothing to give back.
func NewUndo(cfg UndoConfig) *Undo {
	cfg.Pause = max(cmp.Or(cfg.Pause, cfg.TTL/20), time.Millisecond)
	cfg.Timeout = cmp.Or(cfg.Timeout, cfg.TTL/3)
	return &Undo{cfg: cfg}
}

// Add has held given back. It takes values from ctx, and nothing else.
func (u *Undo) Add(ctx context.Context, held Held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= maxUndo {
		return
	}
	u.queue = append(u.queue, doubt{held: held, until: time.Now().Add(u.cfg.TTL)})
	if u.idle == nil {
		u.idle = make(chan struct{})
		go u.run(context.WithoutCancel(ctx))
	}
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
		return Ended(ctx)
	}
}

// run ends soon after the last call of Add: by then all has been given back or has
// lapsed.
func (u *Undo) run(ctx context.Context) {
	pause := time.NewTicker(u.cfg.Pause)
	defer pause.Stop()
	for {
		u.mu.Lock()
		batch := slices.Clone(u.queue)
		if len(batch) == 0 {
			close(u.idle)
			u.idle = nil
			u.mu.Unlock()
			return
		}
		u.mu.Unlock()
		again := u.giveBack(ctx, batch)
		u.mu.Lock()
		u.queue = append(again, u.queue[len(batch):]...) // Add only appends
		left := len(u.queue)
		u.mu.Unlock()
		if left > 0 {
			<-pause.C
		}
	}
}

// giveBack returns those that have to be asked for again.
func (u *Undo) giveBack(ctx context.Context, batch []doubt) (again []doubt) {
	now := time.Now()
	batch = slices.DeleteFunc(batch, func(d doubt) bool { return !now.Before(d.until) })
	for len(batch) > 0 {
		chunk := batch[:min(len(batch), undoChunk)]
		left, ok := u.ask(ctx, chunk)
		again = append(again, left...)
		batch = batch[len(chunk):]
		if !ok { // the store is away, for the others too
			break
		}
	}
	return append(again, batch...)
}

// ask calls GiveBack once, and returns those that have to be asked for again.
func (u *Undo) ask(ctx context.Context, chunk []doubt) (again []doubt, ok bool) {
	held := make([]Held, len(chunk))
	for i, d := range chunk {
		held[i] = d.held
	}
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Timeout)
	defer cancel()
	found, err := u.cfg.GiveBack(ctx, held)
	if err != nil || len(found) != len(held) {
		return chunk, false
	}
	for i, d := range chunk {
		if !found[i] && !d.looked {
			d.looked = true
			again = append(again, d)
		}
	}
	return again, true
}
