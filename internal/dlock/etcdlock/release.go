package etcdlock

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// release gives the key back by revoking the lease under which it was written. That
// works for a lease whose key somebody has deleted, too, and then it is a loss. So
// the key is read before: from what the member has, which waits neither for others
// nor for the disk.
func (p *place) release(ctx context.Context) error {
	p.s.hub.drop(p.watch)
	limit := p.s.cfg.Timeout
	h := p.held()
	var there *pb.RangeResponse
	unread := errNoAnswer
	if p.leaving.Load() {
		limit /= 4
	} else {
		own := exactly(p.own)
		own.Serializable = true
		there, unread = p.s.read(ctx, own)
	}
	revision, err := p.s.revoke(ctx, p.id, limit)
	switch {
	case err != nil:
		p.s.undo.Add(ctx, h)
		return err
	case revision == 0, unread == nil && len(there.Kvs) == 0:
		return &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	}
	return nil
}
