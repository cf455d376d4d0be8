package driver

import (
	"context"
	"sync"

	"example.com/shop/internal/dlock"
)

// Background counts goroutines that end by themselves, and that only [Background.Wait] waits for. The zero value is ready
// for use. Goroutines may start during a wait, which a [sync.WaitGroup] does not allow.
type Background struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again; nil if it is
}

// Go starts f, unless as many as most are running.
func (b *Background) Go(most int, f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n >= most {
		return
	}
	if b.n++; b.n == 1 {
		b.idle = make(chan struct{})
	}
	go func() {
		defer b.done()
		f()
	}()
}

func (b *Background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 {
		close(b.idle)
		b.idle = nil
	}
}

// Wait blocks until nothing runs, or ctx ends: then it returns the error of ctx.
func (b *Background) Wait(ctx context.Context) error {
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
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
