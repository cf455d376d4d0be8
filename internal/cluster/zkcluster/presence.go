package zkcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/zookeeper"
)

// place implements [cluster.Place]: a node among those of the members.
type place struct {
	c           *Cluster
	member      cluster.Member
	incarnation string
	node        zookeeper.Node // of late; the zero Node if there was none
}

// Take implements [cluster.Place]. It reads the list first, so that an instance that will be refused creates no node.
// It reads the list again after it has created its node: of two concurrent instances, the one with the lower number has
// the name.
func (p *place) Take(ctx context.Context, again bool) error {
	p.node = zookeeper.Node{}
	over := time.After(p.c.s.Timeout() * 3 / 2)
	for {
		if err := p.c.s.Sync(ctx); err != nil {
			return err
		}
		names, _, err := p.c.s.Children(ctx, p.c.membersDir())
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		holder, _, err := p.rivals(names, again)
		if err == nil && holder == nil {
			holder, err = p.create(ctx, again)
		}
		switch {
		case err != nil:
			return err
		case holder == nil:
			return nil
		}
		for there := true; there; {
			there, err = p.c.look(ctx, p.c.membersDir()+"/"+holder.name, over)
			if errors.Is(err, errOver) {
				return &cluster.NameTakenError{Holder: holder.member}
			}
			if err != nil {
				return err
			}
		}
	}
}

// create makes the node, and deletes those that it replaces. If another instance turns
// out to have the name it undoes that, and returns who.
func (p *place) create(ctx context.Context, again bool) (holder *seat, err error) {
	text := p.incarnation + ";" + cluster.EncodeMember(p.member)
	node, err := p.c.s.CreateProtected(ctx, zookeeper.Protected{
		Dir: p.c.membersDir(), Label: label(text), List: true, ParentVersion: -1,
	})
	if err != nil {
		return nil, err
	}
	p.node = node
	if node.Children == nil {
		if node.Children, _, err = p.c.s.Children(ctx, p.c.membersDir()); err != nil {
			return nil, p.undo(err)
		}
	}
	holder, replaced, err := p.rivals(node.Children, again)
	if err != nil || holder != nil {
		return holder, p.undo(err)
	}
	for _, other := range replaced {
		path := p.c.membersDir() + "/" + other.name
		if err := p.c.s.Delete(ctx, path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			p.c.s.DeleteLater(path)
		}
	}
	return nil, nil
}

// undo has the node deleted, and returns err.
func (p *place) undo(err error) error {
	p.c.s.DeleteLater(p.node.Path)
	p.node = zookeeper.Node{}
	return err
}

// rivals searches the members for those of the same name that came before the node, or for any if there is no node.
// holder has another address. replaced are those of this instance itself, before a restart or the loss of its session.
func (p *place) rivals(names []string, again bool) (holder *seat, replaced []seat, err error) {
	seats, _ := p.c.seats(names)
	for _, s := range seats {
		switch {
		case s.member.Name != p.member.Name:
		case s.id == p.node.ID:
			return holder, replaced, nil
		case s.incarnation == p.incarnation:
			replaced = append(replaced, s)
		case s.member.Address != p.member.Address || p.member.Address == "":
			holder = &s
		case again:
			return nil, nil, cluster.ErrReplaced
		default:
			replaced = append(replaced, s)
		}
	}
	return holder, replaced, nil
}

// Keep implements [cluster.Place].
func (p *place) Keep(ctx context.Context) error { return p.c.keep(ctx, p.node) }

// Drop implements [cluster.Place].
func (p *place) Drop(ctx context.Context) error {
	if p.node.Path == "" {
		return nil
	}
	return p.c.remove(ctx, p.node)
}

// Join implements [cluster.Membership]. The name of a dead instance is free when the servers have ended its session.
// They are late, so Join waits half as long again.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	p := &place{c: c, member: m, incarnation: rand.Text()}
	return cluster.Enter(ctx, m, cluster.PresenceConfig{Place: p, Limit: c.soon(), OnError: c.cfg.OnError})
}
