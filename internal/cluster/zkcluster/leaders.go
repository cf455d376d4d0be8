package zkcluster

import (
	"context"
	"fmt"
	"iter"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/zookeeper"
)

// Announce publishes l until ctx ends. Then it deletes the announcement, in bounded time, and returns nil or the error.
// The announcement goes with the session. Of several,
// which there are when one leader has not noticed yet that it is none, that with the
// greatest token counts.
func (c *Cluster) Announce(ctx context.Context, election string, l cluster.Leader) error {
	pauses := backoff.Decorrelated{Min: 20 * time.Millisecond, Max: time.Second}
	posting, stop := c.outlive(ctx)
	defer stop()
	for pause := time.Duration(0); ctx.Err() == nil; {
		node, err := c.s.CreateProtected(posting, zookeeper.Protected{
			Dir: c.electionDir(election), Label: label(cluster.EncodeLeader(l)), ParentVersion: -1,
		})
		if err != nil {
			if ctx.Err() == nil {
				c.cfg.OnError(fmt.Errorf("zkcluster: announcement of %q: %w", election, err))
			}
			pause = pauses.Next(pause)
			backoff.Sleep(ctx, pause)
			continue
		}
		if c.keep(ctx, node) != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.soon())
			defer cancel()
			return c.remove(ctx, node)
		}
	}
	return nil
}

// outlive returns a context that ends soon after ctx. A request in flight when ctx ends can be waited for, and its
// effect be undone.
func (c *Cluster) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(c.soon(), cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() {
		stop()
		cancel()
	}
}

// Leaders returns a sequence of the leaders that are announced, with the rules of [cluster.Membership].Members. The zero
// Leader means that there is no announcement.
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	dir := c.electionDir(election)
	return watchDir(ctx, c, dir, cluster.Leader.Equal, func(names []string) (leader cluster.Leader) {
		announcements, _ := entries(c, dir, names, func(e entry) (cluster.Leader, error) { return cluster.DecodeLeader(e.text) })
		for _, l := range announcements {
			if l.Fence.Token > leader.Fence.Token {
				leader = l
			}
		}
		return leader
	})
}
