package sqlcluster

import (
	"context"
	"fmt"
	"iter"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/cluster"
)

// Announce implements [cluster.Registry]. It renews the announcement every TTL/3. A statement that
// is under way when ctx ends is waited for, because it would come after what deletes the announcement.
func (c *Cluster) Announce(ctx context.Context, election string, l cluster.Leader) error {
	token, entry := fmt.Sprintf("%020d", l.Fence.Token), cluster.EncodeLeader(l)
	for {
		wait := c.cfg.TTL / 3
		if err := c.post(context.WithoutCancel(ctx), election, token, entry); err != nil && ctx.Err() == nil {
			c.cfg.OnError(fmt.Errorf("sqlcluster: announcement of %q: %w", election, err))
			wait = c.cfg.TTL / 20
		}
		if !backoff.Sleep(ctx, wait) {
			return c.insist(context.WithoutCancel(ctx), "DELETE FROM cluster_leaders WHERE group_name = ? AND name = ? AND token = ? AND entry = ?",
				c.cfg.Group, election, token, entry)
		}
	}
}

// post writes an announcement, unless there is one with a greater token.
func (c *Cluster) post(ctx context.Context, election, token, entry string) error {
	n, err := c.exec(ctx, "UPDATE cluster_leaders SET token = ?, entry = ?, expires_at = "+c.until()+
		" WHERE group_name = ? AND name = ? AND (token <= ? OR expires_at <= "+c.now+")", token, entry, c.cfg.Group, election, token)
	if err != nil || n > 0 {
		return err
	}
	_, err = c.exec(ctx, c.insert+" INTO cluster_leaders (group_name, name, token, entry, expires_at) VALUES (?, ?, ?, ?, "+c.until()+")",
		c.cfg.Group, election, token, entry)
	return err
}

// Leaders implements [cluster.Registry]. A reading is one SELECT by the primary key.
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	return watch(ctx, c, cluster.Leader.Equal, func(ctx context.Context) (cluster.Leader, error) {
		pairs, err := c.rows(ctx, "SELECT name, entry FROM cluster_leaders WHERE group_name = ? AND name = ? AND expires_at > "+c.now,
			c.cfg.Group, election)
		if err != nil || len(pairs) == 0 {
			return cluster.Leader{}, err
		}
		l, err := cluster.DecodeLeader(pairs[0][1])
		if err != nil {
			c.strays.Report(c.cfg.OnError, "sqlcluster: announcement", pairs[0][0]+": "+pairs[0][1], err)
			return cluster.Leader{}, nil
		}
		return l, nil
	})
}
