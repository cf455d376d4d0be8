package memcluster

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"example.com/shop/internal/cluster"
)

// Cluster is a membership, a board and a store of configuration in memory. The zero
// value is empty and ready for use. It must not be copied.
type Cluster struct {
	mu        sync.Mutex
	members   map[string]*place
	notices   map[string]cluster.Leader
	entries   map[string]cluster.Entry
	listeners map[*func()]struct{}
}

var (
	_ cluster.Membership  = (*Cluster)(nil)
	_ cluster.Board       = (*Cluster)(nil)
	_ cluster.ConfigStore = (*Cluster)(nil)
)

// Join implements [cluster.Membership]. A name that is taken is refused at once.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	m.Started = m.Started.UTC().Truncate(time.Millisecond)
	return cluster.Enter(ctx, m, cluster.PresenceConfig{
		Place: &place{c: c, member: m, gone: make(chan struct{})}, Limit: time.Second,
	})
}

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

// Entries implements [cluster.ConfigStore].
func (c *Cluster) Entries(ctx context.Context, names ...string) iter.Seq2[map[string]cluster.Entry, error] {
	return watch(ctx, c, maps.Equal, func() map[string]cluster.Entry {
		entries := make(map[string]cluster.Entry, len(names))
		for _, name := range names {
			if e, ok := c.entries[name]; ok {
				entries[name] = e
			}
		}
		return entries
	})
}

// Write implements [cluster.ConfigStore].
func (c *Cluster) Write(_ context.Context, name, text string, version int64) (written int64, err error) {
	c.change(func() {
		now := c.entries[name]
		if now.Version != version {
			err = &cluster.ConflictError{Name: name, Expected: version, Current: now}
			return
		}
		if c.entries == nil {
			c.entries = map[string]cluster.Entry{}
		}
		written = version + 1
		c.entries[name] = cluster.Entry{Text: text, Version: written}
	})
	return written, err
}

// Expire deletes the entry of a member, as a store does that has not heard of it. It
// is for tests.
func (c *Cluster) Expire(name string) {
	c.change(func() {
		if p := c.members[name]; p != nil {
			p.remove()
		}
	})
}

// change runs f under mu, and tells those who watch.
func (c *Cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	for listener := range c.listeners {
		(*listener)() // it only notes that it was called
	}
}

func (c *Cluster) listen(changed func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[*func()]struct{}{}
	}
	c.listeners[&changed] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, &changed)
	}
}

// watch returns a sequence of what read returns, which is called under mu.
func watch[T any](ctx context.Context, c *Cluster, equal func(a, b T) bool, read func() T) iter.Seq2[T, error] {
	return cluster.Feed[T]{
		Read: func(context.Context, func()) (T, func(), error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return read(), nil, nil
		},
		Listen: c.listen, Equal: equal, Gap: time.Millisecond, Recheck: time.Hour,
	}.Values(ctx)
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
