package zklock

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/zookeeper"
)

// grant is a node that is the first, and whose lease has not ended.
type grant struct {
	claim
	node    zookeeper.Node
	fence   dlock.Fence
	watched bool // whether a watch reports its end; guarded by queue.mu
}

// grant makes n a lease. It returns errGone if n turns out to be gone.
func (q *queue) grant(ctx context.Context, c claim, n zookeeper.Node, watched bool) (*dlock.Lease, error) {
	g := &grant{claim: c, node: n, fence: dlock.Fence{Token: n.Zxid, Owner: n.ID}, watched: watched}
	sent := q.s.Confirmed()
	if q.s.Epoch() != n.Epoch {
		return nil, errGone
	}
	q.mu.Lock()
	q.grants[n.ID] = g
	q.mu.Unlock()
	return dlock.NewLease(ctx, dlock.Grant{
		Key: c.key, Fence: g.fence, Kind: n.ID, Sent: sent, TTL: q.ttl(), MaxHold: q.cfg.MaxHold,
		Backend: c.backend, Renewer: q.renewer,
		Release: func(ctx context.Context) error { return q.release(ctx, g) },
		Abandon: func() {
			q.forget(g)
			q.s.DeleteLater(n.Path)
		},
	}), nil
}

func (q *queue) forget(g *grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.grants, g.node.ID)
}

// release deletes the node. A successor in this process does not wait for that: its own node is next, and keeps all
// others out. The same step notifies a successor in another process that a holder has left, and not a waiter: the node
// changes before it is deleted. So the successor need not read the queue again.
func (q *queue) release(ctx context.Context, g *grant) error {
	q.forget(g)
	q.free(g.node.Path)
	err := q.s.Retire(ctx, g.node.Path, []byte("released"))
	switch {
	case err == nil:
		q.uncontended.released(g)
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return q.lost(g)
	default:
		q.s.DeleteLater(g.node.Path)
		return err
	}
}

// lost says why a node is gone.
func (q *queue) lost(g *grant) error {
	lost := &dlock.LostError{Key: g.key, Fence: g.fence, Reason: dlock.Forced}
	if q.s.Epoch() != g.node.Epoch {
		lost.Reason = dlock.Expired
	}
	return lost
}

// renew asks whether the nodes are there. That the session lives is proved by a commit:
// servers might answer for a while after a new leader has given the session up.
func (q *queue) renew(ctx context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	var (
		wg        sync.WaitGroup
		confirmed error
	)
	wg.Go(func() { confirmed = q.s.Confirm(ctx) })
	for i, h := range held {
		wg.Go(func() { errs[i] = q.check(ctx, h.Kind) })
	}
	wg.Wait()
	for i, h := range held {
		if errs[i] == nil {
			errs[i] = confirmed
		}
		q.mu.Lock()
		g := q.grants[h.Kind]
		q.mu.Unlock()
		if g != nil && q.s.Epoch() != g.node.Epoch {
			errs[i] = q.lost(g)
		}
	}
	return errs
}

// check reads the node of a grant. The first check also sets a watch, so a shorter grant costs no notification.
func (q *queue) check(ctx context.Context, id string) error {
	q.mu.Lock()
	g := q.grants[id]
	watch := g != nil && !g.watched
	if watch {
		g.watched = true
	}
	q.mu.Unlock()
	var err error
	switch {
	case g == nil:
		return dlock.ErrLost
	case watch:
		err = q.watchOwn(ctx, g.node, func() {})
	default:
		_, _, err = q.s.Get(ctx, g.node.Path)
	}
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, errGone) {
		return q.lost(g)
	}
	if err != nil && watch {
		q.mu.Lock()
		g.watched = false
		q.mu.Unlock()
	}
	return err
}

// watchOwn has gone called, once, when something has happened to n, which nobody but
// its owner may touch; a lease of it ends then. It returns errGone if n is gone. The
// watch ends with n.
func (q *queue) watchOwn(ctx context.Context, n zookeeper.Node, gone func()) error {
	_, _, _, err := q.s.GetW(ctx, n.Path, func(zookeeper.Event) {
		gone()
		q.mu.Lock()
		g := q.grants[n.ID]
		q.mu.Unlock()
		if g != nil {
			go q.renewer.Lose(g.fence.Owner, q.lost(g)) // it calls what its leases want to have called
		}
	})
	if errors.Is(err, zk.ErrNoNode) {
		return errGone
	}
	return err
}
