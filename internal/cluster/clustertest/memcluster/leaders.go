package memcluster

import (
	"context"
	"iter"

	"example.com/shop/internal/cluster"
)

// Announce implements [cluster.Registry].
func (c *Cluster) Announce(ctx context.Context, election string, l cluster.Leader) error {
	c.change(func() {
		if c.announcements == nil {
			c.announcements = map[string]cluster.Leader{}
		}
		if l.Fence.Passes(c.announcements[election].Fence) {
			c.announcements[election] = l
		}
	})
	<-ctx.Done()
	c.change(func() {
		if c.announcements[election].Equal(l) {
			delete(c.announcements, election)
		}
	})
	return nil
}

// Leaders implements [cluster.Registry].
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	return watch(ctx, c, cluster.Leader.Equal, func() cluster.Leader { return c.announcements[election] })
}
