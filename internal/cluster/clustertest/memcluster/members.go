package memcluster

import (
	"context"
	"iter"

	"example.com/shop/internal/cluster"
)

// Members implements [cluster.Membership].
func (c *Cluster) Members(ctx context.Context) iter.Seq2[cluster.View, error] {
	return watch(ctx, c, cluster.View.Equal, func() cluster.View {
		members := make([]cluster.Member, 0, len(c.members))
		for _, p := range c.members {
			members = append(members, p.member)
		}
		return cluster.NewView(members, 0)
	})
}
