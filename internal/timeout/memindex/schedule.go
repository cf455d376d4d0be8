package memindex

import (
	"context"

	"example.com/shop/internal/timeout"
)

// Schedule implements [timeout.Index].
func (x *Index) Schedule(ctx context.Context, kind, partition string, entries []timeout.Entry) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Partition: partition})
	defer p.mu.Unlock()
	before := p.head()
	for _, e := range entries {
		p.put(e.ID, e.At.UnixMilli())
	}
	p.announce(before)
	return nil
}
