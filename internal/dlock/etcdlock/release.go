package etcdlock

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// release gives the key back by revoking the lease under which it was written. That
// works for a lease whose key somebody has deleted, too, and then it is a loss. So
// the key is read at the same time: from what the member has, which comes sooner
// than a lease is revoked, and costs no time.
func (p *place) release(ctx context.Context) error {
	p.s.hub.drop(p.watch)
	limit := p.s.cfg.Timeout
	if p.leaving.Load() {
		limit /= 4
	}
	var there *pb.RangeResponse
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() {
		own := exactly(p.own)
		own.Serializable = true
		there, unread = p.s.read(ctx, own)
	})
	revision, err := p.s.revoke(ctx, p.id, limit)
	reading.Wait()
	h := p.held()
	switch {
	case err != nil:
		p.s.undo.Add(ctx, h)
		return err
	case revision == 0, unread == nil && len(there.Kvs) == 0 && !p.wasThere(ctx, there.Header.Revision, revision):
		return &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	}
	return nil
}

// wasThere reports whether the key was there until the lease was revoked, at revision
// revoked at the latest, although a read did not find it.
func (p *place) wasThere(ctx context.Context, read, revoked int64) bool {
	if read < revoked {
		return false
	}
	// The read was the later one of the two.
	before := exactly(p.own)
	before.Revision = revoked - 1
	there, err := p.s.read(ctx, before)
	return err != nil || len(there.Kvs) > 0
}
