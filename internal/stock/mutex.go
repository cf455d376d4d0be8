package stock

import (
	"context"
	"sync"
)

// mutexes is one mutex per SKU in this process. A mutex is a channel with room
// for one token, so that waiting for it ends with the context.
type mutexes struct {
	mu    sync.Mutex
	bySKU map[string]chan struct{} // guarded by mu; one entry for each SKU sold by "local"
}

func newMutexes() *mutexes { return &mutexes{bySKU: make(map[string]chan struct{})} }

func (m *mutexes) of(sku string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.bySKU[sku]
	if !ok {
		c = make(chan struct{}, 1)
		m.bySKU[sku] = c
	}
	return c
}

func (m *mutexes) hold(ctx context.Context, sku string) (Held, error) {
	c := m.of(sku)
	select {
	case c <- struct{}{}:
		return Held{Context: ctx, Release: func() { <-c }}, nil
	case <-ctx.Done():
		return Held{}, context.Cause(ctx)
	}
}
