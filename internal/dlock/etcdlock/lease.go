package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// renew is for the Renewer. It keeps the leases alive and reads the keys under them
// at the same time: a lease can outlive a key that somebody has deleted.
//
// A former leader that has not noticed the election answers renewals of leases from its memory. It cannot answer a
// linearizable read. So a renewal counts only if a read that was sent with it was answered in the same term. Then that
// member still was the leader after the renewal was sent, and every later leader keeps all leases for a whole TTL.
func (s *store) renew(ctx context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	var alive map[int64]*pb.LeaseKeepAliveResponse
	var there *pb.TxnResponse
	var kept, read error
	var wg sync.WaitGroup
	wg.Go(func() { alive, kept = s.keepAlive(ctx, held) })
	wg.Go(func() { there, read = s.txn(ctx, s.reading(held, s.keys.held)) })
	wg.Wait()
	if read != nil || len(there.GetResponses()) != len(held) {
		read = errors.Join(errNoAnswer, read)
	}
	for i, h := range held {
		id, err := leaseOf(h.Fence.Owner)
		answer := alive[id]
		switch {
		case err != nil:
			errs[i] = err
		case answer != nil && answer.TTL <= 0, read == nil && !has(there, i, h):
			errs[i] = &dlock.LostError{Key: h.Key, Fence: h.Fence}
		case answer == nil:
			errs[i] = errors.Join(errNoAnswer, kept)
		case read != nil:
			errs[i] = read
		case answer.GetHeader().GetRaftTerm() != there.GetHeader().GetRaftTerm():
			errs[i] = errTerm
		}
	}
	s.explain(ctx, held, errs)
	return errs
}

var (
	errNoAnswer = errors.New("etcdlock: renew: no answer")
	errTerm     = errors.New("etcdlock: renew: the leader has changed meanwhile")
)

// reading is the transaction that reads one key for each of held.
func (s *store) reading(held []dlock.Held, key func(dlock.Held) string) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for _, h := range held {
		t.Success = append(t.Success, ranging(exactly(key(h))))
	}
	return t
}

// has reports whether answer i of t has what h holds.
func has(t *pb.TxnResponse, i int, h dlock.Held) bool {
	for _, kv := range t.Responses[i].GetResponseRange().GetKvs() {
		return tokenOf(kv.CreateRevision) == h.Fence.Token
	}
	return false
}

// keepAlive renews the leases of held on one stream, and returns the answers that
// it got by lease.
func (s *store) keepAlive(ctx context.Context, held []dlock.Held) (map[int64]*pb.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := s.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	answers := map[int64]*pb.LeaseKeepAliveResponse{}
	sent := 0
	for _, h := range held {
		id, err := leaseOf(h.Fence.Owner)
		if err != nil {
			continue // it has its verdict
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			break // Recv knows why
		}
		sent++
	}
	for range sent {
		answer, err := stream.Recv()
		if err != nil {
			return answers, err
		}
		answers[answer.ID] = answer
	}
	return answers, nil
}

// explain completes the losses in errs. One that was forced has left word.
func (s *store) explain(ctx context.Context, held []dlock.Held, errs []error) {
	var lost []dlock.Held
	var losses []*dlock.LostError
	for i, err := range errs {
		if loss, ok := errors.AsType[*dlock.LostError](err); ok {
			loss.Reason = dlock.Expired
			lost, losses = append(lost, held[i]), append(losses, loss)
		}
	}
	if len(lost) == 0 {
		return
	}
	words, err := s.txn(ctx, s.reading(lost, func(h dlock.Held) string { return s.keys.forced(h.Fence.Owner) }))
	if err != nil || len(words.Responses) != len(lost) {
		return // it is lost in any case
	}
	for i, loss := range losses {
		if len(names(words.Responses[i])) > 0 {
			loss.Reason = dlock.Forced
		}
	}
}

// lose ends the lease of p, because its key was deleted.
func (s *store) lose(ctx context.Context, p *place) {
	h := p.held()
	loss := &dlock.LostError{Key: h.Key, Fence: h.Fence}
	s.explain(ctx, []dlock.Held{h}, []error{loss})
	s.renewer.Lose(p.owner, loss)
}

// lost is the error of a wait whose place is gone.
func (p *place) lost() error {
	return fmt.Errorf("%w: its place in the queue is gone: %w", dlock.ErrUncertain, p.lease.Err())
}

// release releases the key by deleting it, and leaves the lease to the next place. If etcd does not confirm that this
// request deleted the key, the lease is revoked instead. So no lease is reused while a key may remain under it.
func (p *place) release(ctx context.Context) error {
	p.end()
	limit := p.s.cfg.Timeout
	if p.leaving.Load() {
		limit /= 4
	}
	answer, err := request(ctx, limit, p.s.kv.Txn, leaving(p.own, p.revision))
	h := p.held()
	switch {
	case err != nil:
		p.s.rollback.Add(ctx, h)
		return err
	case !answer.Succeeded: // the lease may be there
		p.s.rollback.Add(ctx, h)
		return &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	}
	p.s.pool.put(p.tenure)
	return nil
}

// keep begins to keep the lease of etcd alive. A waiter has what its caller gets with the grant: a lease that is valid
// all the time.
func (p *place) keep(ctx context.Context, backend any) {
	h, values := p.held(), context.WithoutCancel(ctx)
	p.lease = dlock.NewLease(ctx, dlock.Grant{
		Key: h.Key, Fence: h.Fence, Sent: p.sent, TTL: p.s.cfg.TTL, // granted begins MaxHold
		Backend: backend, Renewer: p.s.renewer,
		Release: p.release,
		Abandon: func() {
			p.end()
			p.s.rollback.Add(values, h) // its key may be gone, and the lease not
		},
	})
}

// granted is the last poll before the caller gets its lease. A waiter whose lease has ended must not have the key,
// whatever the queue contains.
func (p *place) granted(ctx context.Context) (*dlock.Lease, error) {
	if p.lease.Err() != nil {
		p.leave(ctx)
		return nil, p.lost()
	}
	p.after(watchAfter, func() { p.s.notifier.add(p.watch, p.polled+1) })
	if limit := p.s.cfg.MaxHold; limit > 0 { // from now on, and not from when the lease of etcd was granted
		p.after(limit, func() { p.lease.Lose(&dlock.LostError{Reason: dlock.MaxHold}) })
	}
	return p.lease, nil
}
