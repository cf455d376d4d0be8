package etcdlock

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// tenure is one use of a lease of etcd, by one place.
//
// A lease serves one holder or waiter at a time, and may serve another one later (see Lease pool). The etcd library
// has one lease per session instead. Two of its Mutexes on one session both lock, and a session does not notice that
// its key was deleted.
type tenure struct {
	id     int64
	number int       // of the uses of this lease
	sent   time.Time // when the lease was asked for
}

// newTenure is the first one of a lease that nobody has used.
func newTenure() tenure {
	return tenure{id: 1 + rand.Int64N(math.MaxInt64), number: 1, sent: time.Now()}
}

// maxIdle is how many leases a pool has at most.
const maxIdle = 64

// pool has unused leases. To grant and to revoke an etcd lease takes a commit each, as many as the lock itself. So
// leases are reused: a release deletes the key, and leaves the lease to the next acquisition of the same Locker. The
// lease must be younger than a third of its TTL.
//
// An idle lease is not renewed. The lease validity of the next holder counts from the request that granted the lease,
// and depends on no renewal. At most 64 leases are pooled. A lease that is too old is revoked, an unused lease
// expires by its TTL, and Close revokes the others.
//
// A lease is reused only if etcd has confirmed that the release deleted the key, or that the key was never written.
// Otherwise, and after any loss, the lease is revoked. So no request in flight can leave a key under a reused lease.
type pool struct {
	fresh time.Duration // how old a lease may be
	drop  func(tenure)  // revokes a lease in the background

	mu     sync.Mutex
	idle   []tenure // the latest to come is the first to go
	closed bool
}

// get takes a lease out, for its next tenure.
func (p *pool) get() (t tenure, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		last := len(p.idle) - 1
		t, p.idle = p.idle[last], p.idle[:last]
		if time.Since(t.sent) < p.fresh {
			t.number++
			return t, true
		}
		p.drop(t)
	}
	return tenure{}, false
}

// put takes a lease in whose tenure is over.
func (p *pool) put(t tenure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == maxIdle {
		p.drop(t)
		return
	}
	p.idle = append(p.idle, t)
}

// close revokes all leases, and those that come later.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, t := range p.idle {
		p.drop(t)
	}
	p.idle = nil
}
