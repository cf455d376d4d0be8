package redlock

import (
	"context"
	"sync"

	"example.com/shop/internal/dlock"
)

// background counts the calls to servers that nobody waits for any more. They start
// here, end within twice Config.Timeout, and [Locker.Close] waits for them.
type background struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again
}

func (b *background) run(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n++; b.n == 1 {
		b.idle = make(chan struct{})
	}
	go func() {
		defer b.done()
		f()
	}()
}

func (b *background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 {
		close(b.idle)
	}
}

// wait blocks until nothing runs, or ctx ends.
func (b *background) wait(ctx context.Context) error {
	b.mu.Lock()
	idle, n := b.idle, b.n
	b.mu.Unlock()
	if n == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return dlock.Ended(ctx)
	}
}
