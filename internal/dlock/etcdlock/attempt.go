package etcdlock

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// acquire takes key, or waits in its queue.
func (s *store) acquire(ctx context.Context, key string, backend any) (*dlock.Lease, error) {
	p, answer, err := s.enter(ctx, key, entering)
	if err != nil {
		return nil, err
	}
	p.keep(ctx, backend)
	first := false
	defer func() {
		if !first { // after a panic, too: nobody else would end the renewals
			p.leave(ctx)
		}
	}()
	if ahead := names(answer.Responses[0]); len(ahead) > 0 {
		if err := p.wait(ctx, ahead); err != nil {
			return nil, err
		}
	}
	first = true
	return p.granted(ctx)
}

// tryAcquire takes key if nobody is in the way. It writes nothing before it knows
// that, but the lease.
func (s *store) tryAcquire(ctx context.Context, key string, backend any) (*dlock.Lease, error) {
	others, err := s.read(ctx, anyOf(s.keys.queue(key)))
	if err != nil {
		return nil, s.failed(ctx, nil, err)
	}
	if len(others.Kvs) > 0 {
		return nil, dlock.ErrHeld
	}
	p, answer, err := s.enter(ctx, key, ifFree)
	switch {
	case err != nil:
		return nil, err
	case !answer.Succeeded: // somebody was faster
		s.pool.put(p.tenure)
		return nil, dlock.ErrHeld
	}
	p.keep(ctx, backend)
	return p.granted(ctx)
}

// enter has take run for a new place, under a lease of the pool or a new one. A lease of
// the pool that somebody has revoked meanwhile is replaced: nothing was written under it.
func (s *store) enter(ctx context.Context, key string, take func(queue, own string, id int64) *pb.TxnRequest) (*place, *pb.TxnResponse, error) {
	t, pooled := s.pool.get()
	for {
		if !pooled {
			t = newTenure()
		}
		p := s.newPlace(key, t)
		if !pooled {
			if err := s.grant(ctx, t.id); err != nil {
				return nil, nil, s.failed(ctx, p, err)
			}
		}
		answer, err := s.txn(ctx, take(s.keys.queue(key), p.own, t.id))
		switch {
		case pooled && isGone(err):
			pooled = false
		case err != nil:
			return nil, nil, s.failed(ctx, p, err)
		default:
			p.revision, p.polled = answer.Header.Revision, answer.Header.Revision
			return p, answer, nil
		}
	}
}

// revert is for the Rollback. A request that arrives after the lease has been revoked writes nothing.
func (s *store) revert(ctx context.Context, h dlock.Held) (bool, error) {
	id, err := leaseOf(h.Fence.Owner)
	if err != nil {
		return false, err
	}
	revision, err := s.revoke(ctx, id)
	return revision > 0, err
}

// failed is the error of an attempt that err ended. The lease is revoked in the background, and with it disappears any
// key that the attempt has written.
func (s *store) failed(ctx context.Context, p *place, err error) error {
	if p != nil {
		s.rollback.Add(ctx, p.held())
	}
	known := refused(err)
	if ctx.Err() != nil { // its cause may look like an answer
		err = errors.Join(dlock.Ended(ctx), err)
	}
	if known {
		return err
	}
	return fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
}
