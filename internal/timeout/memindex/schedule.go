package memindex

import (
	"context"

	"example.com/shop/internal/timeout"
)

// Schedule implements [timeout.Index].
func (x *Index) Schedule(ctx context.Context, kind, partition string, missing bool, entries []timeout.Entry) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Partition: partition})
	defer p.mu.Unlock()
	before := p.head()
	added := 0
	for _, h := range entries {
		if p.put(h.ID, h.At.UnixMilli(), missing) {
			added++
		}
	}
	p.announce(before)
	return added, nil
}

// Remove implements [timeout.Index].
func (x *Index) Remove(ctx context.Context, kind, partition string, ids []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Partition: partition})
	defer p.mu.Unlock()
	for _, id := range ids {
		p.remove(id)
	}
	return nil
}
