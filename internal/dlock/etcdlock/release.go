package etcdlock

import (
	"context"

	"example.com/shop/internal/dlock"
)

// release gives the key back by revoking the lease under which it was written. That
// works for a lease whose key somebody has deleted, too, and then it is a loss. So
// the key is read before.
func (p *place) release(ctx context.Context) error {
	p.s.hub.drop(p.watch)
	limit := p.s.cfg.Timeout
	there := true
	if p.leaving.Load() {
		limit /= 4
	} else {
		there = p.isThere(ctx)
	}
	h := p.held()
	revision, err := p.s.revoke(ctx, p.id, limit)
	switch {
	case err != nil:
		p.s.undo.Add(ctx, h)
		return err
	case revision == 0, !there:
		return &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	}
	return nil
}

// isThere reports whether etcd has the key, or does not say. It asks for what the
// member has, which waits neither for others nor for the disk; unless that is of before
// the key was written.
func (p *place) isThere(ctx context.Context) bool {
	own := exactly(p.own)
	own.Serializable = true
	answer, err := p.s.read(ctx, own)
	if err == nil && answer.Header.Revision < p.revision {
		own.Serializable = false
		answer, err = p.s.read(ctx, own)
	}
	return err != nil || len(answer.Kvs) > 0
}
