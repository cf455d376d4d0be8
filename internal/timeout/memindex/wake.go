package memindex

import (
	"time"

	"example.com/shop/internal/timeout"
)

// Wake implements [timeout.Index]. Each call returns a channel of its own.
func (x *Index) Wake(s timeout.Shard) <-chan time.Time {
	p := x.part(s)
	defer p.mu.Unlock()
	c := make(chan time.Time, 1)
	p.wakes = append(p.wakes, c)
	return c
}
