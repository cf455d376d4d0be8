package rediscluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/cluster"
)

// Join implements [cluster.Membership]. The name of a dead instance is free when its
// lease has ended.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	text := cluster.EncodeMember(m)
	p := &place{c: c, name: m.Name, text: text, address: strings.Split(text, ";")[1], incarnation: rand.Text()}
	return cluster.Enter(ctx, m, cluster.PresenceConfig{Place: p, Limit: c.cfg.Timeout, OnError: c.cfg.OnError})
}

// place implements [cluster.Place]: an entry among those of the members, and its lease.
type place struct {
	c                                *Cluster
	name, text, address, incarnation string
}

// Take implements [cluster.Place].
func (p *place) Take(ctx context.Context, again bool) error {
	before := "0"
	if again {
		before = "1"
	}
	deadline := time.Now().Add(p.c.cfg.TTL * 3 / 2)
	for {
		reply, err := p.c.run(ctx, joinScript, p.c.memberKeys(), p.ttl(), p.name, p.incarnation, p.address, p.text, before).Slice()
		if err != nil {
			return err
		}
		switch reply[0] {
		case int64(1):
			return nil
		case int64(-1):
			return cluster.ErrReplaced
		}
		if !time.Now().Before(deadline) {
			holder, err := cluster.DecodeMember(fmt.Sprint(reply[1]))
			if err != nil {
				holder.Name = p.name
			}
			return &cluster.NameTakenError{Holder: holder}
		}
		if !backoff.Sleep(ctx, p.c.cfg.Poll) {
			return ctx.Err()
		}
	}
}

// Keep implements [cluster.Place]. It renews the lease, more often after a failure.
func (p *place) Keep(ctx context.Context) error {
	for wait := p.c.cfg.TTL / 3; ; {
		if !backoff.Sleep(ctx, wait) {
			return ctx.Err()
		}
		renewed, err := p.c.run(ctx, renewScript, p.c.memberKeys(), p.ttl(), p.name, p.incarnation).Int()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.c.cfg.OnError(fmt.Errorf("rediscluster: renewal of %q: %w", p.name, err))
			wait = p.c.cfg.TTL / 20
		case renewed == 0:
			return nil
		default:
			wait = p.c.cfg.TTL / 3
		}
	}
}

// Drop implements [cluster.Place].
func (p *place) Drop(ctx context.Context) error {
	return p.c.insist(ctx, leaveScript, p.c.memberKeys(), p.ttl(), p.name, p.incarnation)
}

func (p *place) ttl() int64 { return p.c.cfg.TTL.Milliseconds() }
