package etcdlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// place is one holder or waiter: a lease of etcd, and a key under it.
type place struct {
	s         *store
	key, kind string
	tenure
	owner    string
	own      string // the key in etcd
	revision int64  // at which own was created
	looked   int64  // revision at which own was seen last, and who was ahead of it
	lease    *dlock.Lease
	leaving  atomic.Bool // the caller gives up, and waits for little
	watch    *watch      // of own

	mu     sync.Mutex
	over   bool          // the grant, whose leases may have ended one after the other
	timers []*time.Timer // that run until then
}

func (s *store) newPlace(key, kind string, t tenure) *place {
	p := &place{s: s, key: key, kind: kind, tenure: t, owner: ownerOf(t)}
	p.own = s.keys.own(key, kind, p.owner)
	p.watch = &watch{key: p.own, told: p.told}
	return p
}

func (p *place) held() dlock.Held {
	return dlock.Held{Key: p.key, Kind: p.kind, Fence: dlock.Fence{Token: uint64(p.revision), Owner: p.owner}}
}

// acquire takes key, and waits for it.
func (s *store) acquire(ctx context.Context, key, kind string, backend any) (*dlock.Lease, error) {
	p, answer, err := s.enter(ctx, key, kind, inLine)
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
func (s *store) tryAcquire(ctx context.Context, key, kind string, backend any) (*dlock.Lease, error) {
	ahead := s.keys.ahead(key, kind)
	others, err := s.read(ctx, anyOf(ahead))
	if err != nil {
		return nil, s.failed(ctx, nil, err)
	}
	if len(others.Kvs) > 0 {
		return nil, dlock.ErrHeld
	}
	p, answer, err := s.enter(ctx, key, kind, ifFree)
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
func (s *store) enter(ctx context.Context, key, kind string, take func(ahead, own string, id int64) *pb.TxnRequest) (*place, *pb.TxnResponse, error) {
	t, pooled := s.pool.get()
	for {
		if !pooled {
			t = newTenure()
		}
		p := s.newPlace(key, kind, t)
		if !pooled {
			if err := s.grant(ctx, t.id); err != nil {
				return nil, nil, s.failed(ctx, p, err)
			}
		}
		answer, err := s.txn(ctx, take(s.keys.ahead(key, kind), p.own, t.id))
		switch {
		case pooled && isGone(err):
			pooled = false
		case err != nil:
			return nil, nil, s.failed(ctx, p, err)
		default:
			p.revision, p.looked = answer.Header.Revision, answer.Header.Revision
			return p, answer, nil
		}
	}
}

// keep begins to keep the lease of etcd alive. What a waiter has is what its caller
// gets when it is granted: a lease whose window of trust is open all the time.
func (p *place) keep(ctx context.Context, backend any) {
	h, values := p.held(), context.WithoutCancel(ctx)
	p.lease = dlock.NewLease(ctx, dlock.Grant{
		Key: h.Key, Kind: h.Kind, Fence: h.Fence, Sent: p.sent, TTL: p.s.cfg.TTL,
		Backend: backend, NoReentry: p.s.cfg.NoReentry, Renewer: p.s.renewer,
		Release: p.release,
		Abandon: func() {
			p.end()
			p.s.undo.Add(values, h) // its key may be gone, and the lease not
		},
	})
}

// after calls f after d, unless the grant is over by then.
func (p *place) after(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.timers = append(p.timers, time.AfterFunc(d, f))
	}
}

// end is called when the grant is over: it was released by its last lease, or lost.
func (p *place) end() {
	p.s.hub.drop(p.watch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, timer := range p.timers {
		timer.Stop()
	}
}

// leave gives up a wait. What cannot be given back at once is in the background.
func (p *place) leave(ctx context.Context) {
	p.leaving.Store(true)
	p.s.hub.drop(p.watch) // which may have begun after the lease was lost
	_ = p.lease.Release(ctx)
}

// granted is the last look before the caller gets its lease: a waiter whose lease
// has ended must not have the key, whatever the queue says.
func (p *place) granted(ctx context.Context) (*dlock.Lease, error) {
	if p.lease.Err() != nil {
		p.leave(ctx)
		return nil, p.lost()
	}
	p.after(watchAfter, func() { p.s.hub.add(p.watch, p.looked+1) })
	if limit := p.s.cfg.MaxHold; limit > 0 { // from now on, and not from when the lease of etcd was granted
		p.after(limit, func() { p.s.renewer.Lose(p.owner, &dlock.LostError{Reason: dlock.MaxHold}) })
	}
	return p.lease, nil
}

// watchAfter is how long a key is held before it is watched. A watch costs a third of
// what it costs to take a key and to give it back, and those who hold it for less have
// nothing from it. It hears of what happened before.
const watchAfter = 100 * time.Millisecond

// told is called by the hub when there is news of own.
func (p *place) told() {
	if _, end, _ := p.s.hub.state(p.watch); end > 0 {
		p.s.hub.goes(func(ctx context.Context) { p.s.tell(ctx, p) })
	}
}

// pause is how long a waiter waits before it looks by itself.
func (p *place) pause() time.Duration {
	longest := p.s.recheck()
	return longest*4/5 + rand.N(longest/5)
}
