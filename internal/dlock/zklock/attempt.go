package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/zookeeper"
)

// enter takes a place in the queue and waits until it is the first, as often as
// the place is taken away.
func (q *queue) enter(ctx context.Context, c claim) (*dlock.Lease, error) {
	for placed := false; ; placed = true {
		was, alone := q.uncontended.since(c.dir)
		n, err := q.place(ctx, c, was.version, !alone)
		if alone && errors.Is(err, zk.ErrBadVersion) {
			q.uncontended.forget(c.dir)
			n, err = q.place(ctx, c, anyMark().version, true)
			alone = false
		}
		if err != nil && placed { // the place before was in the way of others
			err = fmt.Errorf("%w: %w", zookeeper.ErrUncertain, err)
		}
		if err != nil {
			return nil, explain("acquire", c.key, err)
		}
		var lease *dlock.Lease
		if alone && n.Parent == was.parent {
			lease, err = q.grant(ctx, c, n, false)
		} else {
			lease, err = q.await(ctx, c, n)
		}
		switch {
		case err == nil:
			return lease, nil
		case errors.Is(err, errGone):
			q.s.DeleteLater(n.Path) // the session was considered over, perhaps wrongly
		default:
			return nil, q.leave(ctx, c, n, err)
		}
	}
}

// place creates a node, provided that the directory has that version.
func (q *queue) place(ctx context.Context, c claim, version int32, list bool) (zookeeper.Node, error) {
	n, err := q.s.CreateProtected(ctx, zookeeper.Protected{Dir: c.dir, Label: label, List: list, ParentVersion: version})
	if err == nil {
		q.uncontended.created(c, n)
	}
	return n, err
}

// enterFree takes the first place if nobody is in the way. Each created node raises the version of the directory. So a
// node that is created on condition of the version of an empty queue is certainly the first. No other attempt ever sees
// the node of a TryAcquire that fails.
func (q *queue) enterFree(ctx context.Context, c claim) (*dlock.Lease, error) {
	for fresh := false; ; {
		was, free, err := q.look(ctx, c)
		if err == nil && !free {
			if fresh {
				return nil, fmt.Errorf("zklock: %q: %w", c.key, dlock.ErrHeld)
			}
			// The server may be behind, and show who has left.
			fresh = true
			if err = q.s.Sync(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("zklock: acquire %q: %w", c.key, unsent(err))
		}
		n, err := q.place(ctx, c, was.version, false)
		if errors.Is(err, zk.ErrBadVersion) {
			fresh = false
			continue
		}
		if err != nil {
			return nil, explain("acquire", c.key, err)
		}
		if n.Parent != was.parent { // a container of the same name and version, but not the one that was empty
			return nil, q.leave(ctx, c, n, errGone)
		}
		lease, err := q.grant(ctx, c, n, false)
		if err != nil {
			return nil, q.leave(ctx, c, n, err)
		}
		return lease, nil
	}
}

// look reads the directory, and reports whether c would have to wait for nobody.
func (q *queue) look(ctx context.Context, c claim) (was mark, free bool, err error) {
	for {
		names, stat, err := q.s.Children(ctx, c.dir)
		if err == nil {
			return mark{uint64(stat.Czxid), stat.Version}, !contended(names), nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return mark{}, false, err
		}
		if err := q.s.EnsureContainer(ctx, c.dir); err != nil {
			return mark{}, false, err
		}
	}
}

// unsent hides that the outcome of a reading is unknown: it has none.
func unsent(err error) error {
	if errors.Is(err, zookeeper.ErrUncertain) {
		return fmt.Errorf("%w: %v", zookeeper.ErrUnavailable, err) //nolint:errorlint // On purpose.
	}
	return err
}

// leave deletes the node of a caller whose context has ended, or whose attempt has failed. It waits for the answer for
// a moment, so that usually nothing is left when Acquire returns. A failure is uncertain: the node blocked others.
func (q *queue) leave(ctx context.Context, c claim, n zookeeper.Node, why error) error {
	ended := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.s.Timeout()/10)
	defer cancel()
	err := q.s.Delete(ctx, n.Path, -1)
	if left := err == nil || errors.Is(err, zk.ErrNoNode); !left {
		q.s.DeleteLater(n.Path)
	} else if ended {
		return fmt.Errorf("zklock: acquire %q: %w", c.key, why)
	}
	return fmt.Errorf("zklock: acquire %q: %w: %w", c.key, dlock.ErrUncertain, why)
}
