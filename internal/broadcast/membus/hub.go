package membus

import (
	"sync"
)

// Hub is what a server is to others: the buses on it hear one another. The zero value
// is ready for use.
type Hub struct {
	mu    sync.Mutex
	buses map[*Bus]struct{} // those that run
	deaf  bool              // in Interrupt
}

// Interrupt runs f with all buses cut off, and has them told of it: what is published
// meanwhile is lost. It lets tests of what uses a bus see how that bears it.
func (h *Hub) Interrupt(f func()) {
	h.each(func(b *Bus) { b.fan.Down() }, true)
	f()
	h.each(func(b *Bus) { b.fan.Up() }, false)
}

func (h *Hub) each(do func(*Bus), deaf bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = deaf
	for b := range h.buses {
		do(b)
	}
}
