package memcluster

import (
	"context"
	"iter"

	"example.com/shop/internal/cluster"
)

// Announce implements [cluster.Board].
func (c *Cluster) Announce(ctx context.Context, election string, l cluster.Leader) error {
	c.change(func() {
		if c.notices == nil {
			c.notices = map[string]cluster.Leader{}
		}
		if l.Fence.Passes(c.notices[election].Fence) {
			c.notices[election] = l
		}
	})
	<-ctx.Done()
	c.change(func() {
		if c.notices[election].Equal(l) {
			delete(c.notices, election)
		}
	})
	return nil
}

// Leaders implements [cluster.Board].
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	return watch(ctx, c, cluster.Leader.Equal, func() cluster.Leader { return c.notices[election] })
}
