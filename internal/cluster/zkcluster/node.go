package zkcluster

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/zookeeper"
)

// errOver means that a wait has lasted for as long as it may.
var errOver = errors.New("zkcluster: waited long enough")

// look reports whether there is, or may be, a node at path. If so, it returns when the node changes, or after a third
// of the session's timeout. It returns an error when ctx ends or over fires.
func (c *Cluster) look(ctx context.Context, path string, over <-chan time.Time) (there bool, err error) {
	news := make(chan struct{}, 1)
	_, _, stop, err := c.s.GetW(ctx, path, func(zookeeper.Event) {
		select {
		case news <- struct{}{}:
		default: // it may be called once too often
		}
	})
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err == nil {
		defer stop()
	}
	select {
	case <-news:
	case <-time.After(c.soon()):
	case <-over:
		return true, errOver
	case <-ctx.Done():
		return true, ctx.Err()
	}
	return true, nil
}

// keep returns nil when n is gone, or its session is, or the error of ctx.
func (c *Cluster) keep(ctx context.Context, n zookeeper.Node) error {
	for c.s.Epoch() == n.Epoch {
		if there, err := c.look(ctx, n.Path, nil); err != nil || !there {
			return err
		}
	}
	return nil
}

// remove deletes n, in the background if the servers do not answer in time.
func (c *Cluster) remove(ctx context.Context, n zookeeper.Node) error {
	err := c.s.Delete(ctx, n.Path, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	c.s.DeleteLater(n.Path)
	return err
}
