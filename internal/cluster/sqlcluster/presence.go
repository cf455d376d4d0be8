package sqlcluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/backoff"
)

// forget is how long after its end the row of a member is kept.
const forget = 24 * time.Hour

// Join implements [cluster.Membership]. The name of a dead instance is free when its
// row has expired.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	p := &place{c: c, member: m, incarnation: rand.Text()}
	return cluster.Enter(ctx, m, cluster.PresenceConfig{Place: p, Limit: c.cfg.Timeout, OnError: c.cfg.OnError})
}

// place implements [cluster.Place]: a row among those of the members.
type place struct {
	c           *Cluster
	member      cluster.Member
	incarnation string
}

// Take implements [cluster.Place].
func (p *place) Take(ctx context.Context, again bool) error {
	deadline := time.Now().Add(p.c.cfg.TTL * 3 / 2)
	for {
		if taken, err := p.try(ctx, again); taken || err != nil {
			return err
		}
		holder, err := p.holder(ctx, again)
		switch {
		case err != nil:
			return err
		case holder != nil && !time.Now().Before(deadline):
			return &cluster.NameTakenError{Holder: *holder}
		case holder != nil && !backoff.Sleep(ctx, p.c.cfg.Poll):
			return ctx.Err()
		}
	}
}

// try takes the row if it has expired, is one's own, or that of the same instance before a restart.
func (p *place) try(ctx context.Context, again bool) (taken bool, err error) {
	c, m, entry := p.c, p.member, cluster.EncodeMember(p.member)
	args := []any{p.incarnation, m.Address, entry, c.cfg.Group, m.Name, p.incarnation}
	free := "NOT (" + c.live(c.now) + ") OR incarnation = ?"
	if !again && m.Address != "" {
		free += " OR address = ?"
		args = append(args, m.Address)
	}
	n, err := c.exec(ctx, "UPDATE cluster_members SET incarnation = ?, address = ?, entry = ?, expires_at = "+c.until()+
		" WHERE group_name = ? AND name = ? AND ("+free+")", args...)
	if err == nil && n == 0 {
		n, err = c.exec(ctx, c.insert("cluster_members (group_name, name, incarnation, address, entry, expires_at) VALUES (?, ?, ?, ?, ?, "+
			c.until()+")"), c.cfg.Group, m.Name, p.incarnation, m.Address, entry)
	}
	if err != nil || n == 0 {
		return false, err
	}
	_, err = c.exec(ctx, "DELETE FROM cluster_members WHERE group_name = ? AND expires_at < "+c.now+" - ?", c.cfg.Group, forget.Microseconds())
	return true, err
}

// holder returns the live member that has the name, or nil.
func (p *place) holder(ctx context.Context, again bool) (*cluster.Member, error) {
	pairs, err := p.c.rows(ctx, "SELECT address, entry FROM cluster_members WHERE group_name = ? AND name = ? AND "+p.c.live(p.c.now),
		p.c.cfg.Group, p.member.Name)
	if err != nil || len(pairs) == 0 {
		return nil, err
	}
	if again && pairs[0][0] == p.member.Address && p.member.Address != "" {
		return nil, cluster.ErrReplaced
	}
	holder, err := cluster.DecodeMember(pairs[0][1])
	if err != nil {
		holder.Name = p.member.Name
	}
	return &holder, nil
}

// Keep implements [cluster.Place]. It renews the row, more often after a failure.
func (p *place) Keep(ctx context.Context) error {
	for wait := p.c.cfg.TTL / 3; ; {
		if !backoff.Sleep(ctx, wait) {
			return ctx.Err()
		}
		n, err := p.c.exec(ctx, "UPDATE cluster_members SET expires_at = "+p.c.until()+
			" WHERE group_name = ? AND name = ? AND incarnation = ? AND expires_at > "+p.c.now, p.c.cfg.Group, p.member.Name, p.incarnation)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.c.cfg.OnError(fmt.Errorf("sqlcluster: renewal of %q: %w", p.member.Name, err))
			wait = p.c.cfg.TTL / 20
		case n == 0:
			return nil
		default:
			wait = p.c.cfg.TTL / 3
		}
	}
}

// Drop implements [cluster.Place].
func (p *place) Drop(ctx context.Context) error {
	return p.c.insist(ctx, "DELETE FROM cluster_members WHERE group_name = ? AND name = ? AND incarnation = ?",
		p.c.cfg.Group, p.member.Name, p.incarnation)
}

// insist repeats a deletion for half a Timeout, because nobody else makes it before the row expires.
func (c *Cluster) insist(ctx context.Context, statement string, args ...any) error {
	trying, cancel := context.WithTimeout(ctx, c.cfg.Timeout/2)
	defer cancel()
	for {
		_, err := c.exec(ctx, statement, args...)
		if err == nil || !backoff.Sleep(trying, c.cfg.Timeout/10) {
			return err
		}
	}
}
