package redislock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxUndos bounds the memory that an outage can cost. The TTL does the rest.
const maxUndos = 4096

// undo takes back what an attempt with an unknown outcome may have done.
type undo struct {
	run   func(context.Context) (found bool, err error)
	until time.Time // when the TTL has done it
	again bool      // it found nothing once
}

// undoer runs undos in one goroutine, which add starts, which ends when there is
// nothing left to take back, and which wait waits for.
type undoer struct {
	timeout time.Duration // of one run

	mu    sync.Mutex
	queue []undo
	idle  chan struct{} // closed when the goroutine has ended; nil if none runs
}

// add takes u back in the background, with the values of ctx.
func (d *undoer) add(ctx context.Context, u undo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) >= maxUndos {
		return
	}
	d.queue = append(d.queue, u)
	if d.idle == nil {
		d.idle = make(chan struct{})
		go d.loop(context.WithoutCancel(ctx))
	}
}

// loop ends within a TTL of the last call of add.
func (d *undoer) loop(ctx context.Context) {
	pause := time.NewTicker(max(d.timeout/4, time.Millisecond))
	defer pause.Stop()
	for {
		d.mu.Lock()
		batch := slices.Clone(d.queue)
		if len(batch) == 0 {
			close(d.idle)
			d.idle = nil
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		left := d.runAll(ctx, batch)
		d.mu.Lock()
		d.queue = append(left, d.queue[len(batch):]...) // add only appends
		more := len(d.queue) > 0
		d.mu.Unlock()
		if more {
			<-pause.C
		}
	}
}

// runAll returns those that have to be run again: because Redis did not answer,
// or because they found nothing the first time. The lost request may still be
// on its way then, in the buffers of a connection given up.
func (d *undoer) runAll(ctx context.Context, batch []undo) (left []undo) {
	for i, u := range batch {
		if !time.Now().Before(u.until) {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, d.timeout)
		found, err := u.run(attempt)
		cancel()
		if err != nil {
			return append(left, batch[i:]...)
		}
		if !found && !u.again {
			u.again = true
			left = append(left, u)
		}
	}
	return left
}

func (d *undoer) wait(ctx context.Context) error {
	d.mu.Lock()
	idle := d.idle
	d.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
