package zkcluster

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/zookeeper"
)

// soon bounds one attempt: a third of the session's timeout, so that a failure is known before the session is over.
func (c *Cluster) soon() time.Duration { return c.s.Timeout() / 3 }

// watchDir returns a sequence of what of makes of the children of a node.
func watchDir[T any](ctx context.Context, c *Cluster, dir string, equal func(a, b T) bool, of func(names []string) T) iter.Seq2[T, error] {
	return watch(ctx, c, equal, func(ctx context.Context, changed func()) (value T, stop func(), err error) {
		names, stop, err := c.list(ctx, dir, changed)
		if err != nil {
			return value, nil, err
		}
		return of(names), stop, nil
	})
}

// watch returns a sequence of what read returns. A server that is cut off from its leader answers for a while. So each
// reading that no watch caused begins with a commit that changes nothing. There is one every third of the timeout.
func watch[T any](ctx context.Context, c *Cluster, equal func(a, b T) bool, read func(ctx context.Context, changed func()) (T, func(), error)) iter.Seq2[T, error] {
	return cluster.Feed[T]{
		Read: func(ctx context.Context, changed func()) (value T, stop func(), err error) {
			if time.Since(c.s.Confirmed()) > c.soon()/2 {
				if err := c.s.Confirm(ctx); err != nil {
					return value, nil, err
				}
			}
			return read(ctx, changed)
		},
		Listen: func(changed func()) (stop func()) {
			return c.s.OnState(func(zookeeper.State) { changed() })
		},
		Equal: equal, FallbackPoll: c.soon(), Timeout: c.soon(),
	}.Values(ctx)
}

// list returns the children of a container, which it makes if it is missing, and
// watches them.
func (c *Cluster) list(ctx context.Context, dir string, changed func()) (names []string, stop func(), err error) {
	for {
		names, _, stop, err = c.s.ChildrenW(ctx, dir, func(zookeeper.Event) { changed() })
		if !errors.Is(err, zk.ErrNoNode) {
			return names, stop, err
		}
		if err := c.s.EnsureContainer(ctx, dir); err != nil {
			return nil, nil, err
		}
	}
}
