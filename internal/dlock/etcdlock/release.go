package etcdlock

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// release gives the key back by deleting it, and leaves the lease to the next place. If
// it does not become known that the key was deleted, and by this, the lease is revoked
// instead: it is not used again before all that was ever written under it is known to
// be gone.
func (p *place) release(ctx context.Context) error {
	p.end()
	limit := p.s.cfg.Timeout
	if p.leaving.Load() {
		limit /= 4
	}
	answer, err := request(ctx, limit, func(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
		return p.s.kv.Txn(ctx, t)
	}, leaving(p.own, p.revision))
	h := p.held()
	switch {
	case err != nil:
		p.s.undo.Add(ctx, h)
		return err
	case !answer.Succeeded: // the lease may be there
		p.s.undo.Add(ctx, h)
		return &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	}
	p.s.pool.put(p.tenure)
	return nil
}
