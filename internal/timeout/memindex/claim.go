package memindex

import (
	"context"
	"time"

	"example.com/shop/internal/timeout"
)

// Claim implements [timeout.Index].
func (x *Index) Claim(ctx context.Context, s timeout.Shard, limit int) (timeout.Claim, error) {
	if ctx.Err() != nil {
		return timeout.Claim{}, ctx.Err()
	}
	p := x.part(s)
	defer p.mu.Unlock()
	now := x.now().UnixMilli()
	c := timeout.Claim{Now: time.UnixMilli(now)}
	for _, e := range p.take(now, limit) {
		c.Timers = append(c.Timers, timeout.Entry{ID: e.id, At: time.UnixMilli(e.at)})
	}
	if head := p.head(); head != never {
		c.Next = time.UnixMilli(head)
	}
	return c, nil
}
