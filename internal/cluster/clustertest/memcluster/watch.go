package memcluster

import (
	"context"
	"iter"
	"time"

	"example.com/shop/internal/cluster"
)

// change runs f under mu, and notifies the watchers.
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
		Listen: c.listen, Equal: equal, Gap: time.Millisecond, FallbackPoll: time.Hour,
	}.Values(ctx)
}
