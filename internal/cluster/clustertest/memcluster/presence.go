package memcluster

import (
	"context"
	"time"

	"example.com/shop/internal/cluster"
)

// Join implements [cluster.Membership]. A name that is taken is refused at once.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	m.Started = m.Started.UTC().Truncate(time.Millisecond)
	return cluster.Enter(ctx, m, cluster.PresenceConfig{
		Place: &place{c: c, member: m, gone: make(chan struct{})}, Limit: time.Second,
	})
}

// Expire deletes the entry of a member, as a store does after the member sent no renewal. It is for tests.
func (c *Cluster) Expire(name string) {
	c.change(func() {
		if p := c.members[name]; p != nil {
			p.remove()
		}
	})
}

// place implements [cluster.Place].
type place struct {
	c      *Cluster
	member cluster.Member
	gone   chan struct{} // closed when the entry is not there; replaced under mu
}

// Take implements [cluster.Place].
func (p *place) Take(_ context.Context, again bool) (err error) {
	p.c.change(func() {
		switch other := p.c.members[p.member.Name]; {
		case other == nil:
		case other.member.Address != p.member.Address || p.member.Address == "":
			err = &cluster.NameTakenError{Holder: other.member}
		case again:
			err = cluster.ErrReplaced
		default:
			other.remove()
		}
		if err != nil {
			return
		}
		if p.c.members == nil {
			p.c.members = map[string]*place{}
		}
		p.c.members[p.member.Name] = p
		p.gone = make(chan struct{})
	})
	return err
}

// Keep implements [cluster.Place].
func (p *place) Keep(ctx context.Context) error {
	p.c.mu.Lock()
	gone := p.gone
	p.c.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drop implements [cluster.Place].
func (p *place) Drop(context.Context) error {
	p.c.change(func() {
		if p.c.members[p.member.Name] == p {
			p.remove()
		}
	})
	return nil
}

// remove is called under mu.
func (p *place) remove() {
	delete(p.c.members, p.member.Name)
	close(p.gone)
}
