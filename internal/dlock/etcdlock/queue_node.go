package etcdlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock"
)

// place is one holder or waiter: a lease of etcd, and a key under it.
type place struct {
	s   *store
	key string
	tenure
	owner    string
	own      string // the key in etcd
	revision int64  // at which own was created
	polled   int64  // revision at which own was seen last, and who was ahead of it
	lease    *dlock.Lease
	leaving  atomic.Bool // the caller gives up, and waits for little
	watch    *watch      // of own

	mu     sync.Mutex
	over   bool          // the grant, whose leases may have ended one after the other
	timers []*time.Timer // that run until then
}

func (s *store) newPlace(key string, t tenure) *place {
	p := &place{s: s, key: key, tenure: t, owner: ownerOf(t)}
	p.own = s.keys.own(key, p.owner)
	p.watch = &watch{key: p.own, onEvent: p.onEvent}
	return p
}

func (p *place) held() dlock.Held {
	return dlock.Held{Key: p.key, Fence: dlock.Fence{Token: tokenOf(p.revision), Owner: p.owner}}
}

// tokenOf returns the fencing token of the grant whose key was created at revision. Earlier releases gave a grant 16
// tokens from here on. So the factor stays: a resource that has accepted one of them would refuse a revision.
func tokenOf(revision int64) uint64 { return 16 * uint64(revision) }

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
	p.s.notifier.drop(p.watch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, timer := range p.timers {
		timer.Stop()
	}
}

// leave gives up a wait. If it cannot release the place at once, it does so in the background.
func (p *place) leave(ctx context.Context) {
	p.leaving.Store(true)
	p.s.notifier.drop(p.watch) // which may have begun after the lease was lost
	_ = p.lease.Release(ctx)
}

// onEvent is called by the notifier with each event of own.
func (p *place) onEvent() {
	if _, end, _ := p.s.notifier.state(p.watch); end > 0 {
		p.s.notifier.goes(func(ctx context.Context) { p.s.lose(ctx, p) })
	}
}
