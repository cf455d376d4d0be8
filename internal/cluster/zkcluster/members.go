package zkcluster

import (
	"context"
	"iter"

	"example.com/shop/internal/cluster"
)

// Members implements [cluster.Membership]. A reading is one request, whatever the
// number of members, and one more if the session has not been confirmed of late.
func (c *Cluster) Members(ctx context.Context) iter.Seq2[cluster.View, error] {
	return watchDir(ctx, c, c.membersDir(), cluster.View.Equal, func(names []string) cluster.View {
		seats, ignored := c.seats(names)
		members := make([]cluster.Member, len(seats))
		for i, s := range seats {
			members[i] = s.member
		}
		return cluster.NewView(members, ignored)
	})
}
