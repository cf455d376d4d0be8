package events

import (
	"cmp"
	"slices"
	"time"
)

// eventLeases limits the leases, and the refusals, of one event.
const eventLeases = 32

// leases collects what the next event about the lock of a SKU contains. Publisher.mu protects it.
type leases struct {
	Lock

	held  []*heldLease // the latest ones
	known []*heldLease // that an event has, and that have ended or were renewed since; later ones do not displace these
}

// heldLease is a lease, and what its events need.
type heldLease struct {
	Lease

	expires   func() time.Time // nil: unknown
	published bool             // by an event without its end
}

// waiters are the orders of this instance that wait for the lease of a SKU. Publisher.mu protects them.
type waiters struct {
	strategy string
	count    func(sku string) int
	known    int // by the latest event
}

// Held publishes that this instance was granted a lease of a SKU, for which it has waited since asked. expires returns the end of its
// validity, must not block, and may be nil. Call ended once the lease is no longer used.
func (p *Publisher) Held(sku, strategy string, fence uint64, asked time.Time, expires func() time.Time) (ended func()) {
	lease := &heldLease{Lease: Lease{Fence: fence, Asked: asked.UTC(), From: time.Now().UTC()}, expires: expires}
	p.collect(func() {
		l := p.lock(sku, strategy, fence)
		l.Fence = fence
		l.Count++
		l.held = latest(l.held, lease)
	})
	return func() {
		p.collect(func() {
			lease.Until = time.Now().UTC()
			if l := p.lock(sku, strategy, fence); lease.published {
				l.again(lease)
			}
		})
	}
}

// Refused publishes that a row refused a write of this instance with a fencing token, because it had accepted a
// later one.
func (p *Publisher) Refused(sku, strategy string, fence, accepted uint64) {
	p.collect(func() {
		l := p.lock(sku, strategy, fence)
		l.Refused = latest(l.Refused, Refusal{Fence: fence, Accepted: accepted, At: time.Now().UTC()})
	})
}

// Waits publishes how many orders of this instance wait for the lease of a SKU, from now on until none waits. count returns their number,
// and must not block.
func (p *Publisher) Waits(sku, strategy string, count func(sku string) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[sku] == nil {
		p.waits[sku] = &waiters{strategy: strategy, count: count}
		time.AfterFunc(quiet, func() { signal(p.wake) }) // most orders have their lease by then
	}
}

// countWaiters counts the orders that wait. It requires mu.
func (p *Publisher) countWaiters() {
	for sku, w := range p.waits {
		before := w.known
		if w.known = w.count(sku); w.known != before {
			p.lock(sku, w.strategy, 0)
		}
		if l := p.locks[sku]; l != nil {
			l.Waiting = w.known
		}
		if w.known == 0 {
			delete(p.waits, sku)
		}
	}
	if len(p.waits) > 0 {
		time.AfterFunc(quiet, func() { signal(p.wake) }) // for the next count
	}
}

// lock returns what is collected about the lock of a SKU.
func (p *Publisher) lock(sku, strategy string, fence uint64) *leases {
	l := p.locks[sku]
	if l == nil {
		l = &leases{Lock: Lock{SKU: sku, Strategy: strategy, Holder: p.cfg.Instance}}
		p.locks[sku] = l
	}
	l.Fence = cmp.Or(l.Fence, fence)
	return l
}

// lockEvent returns the event, and marks its leases as published. It requires mu.
func (p *Publisher) lockEvent(l *leases) Lock {
	for _, h := range append(l.known, l.held[max(0, len(l.known)+len(l.held)-eventLeases):]...) {
		if h.expires != nil {
			h.Expires = h.expires().UTC()
		}
		if !h.Until.IsZero() && h.Until.Before(h.Expires) {
			h.Expires = time.Time{} // it was released in time
		}
		h.published = true
		l.Leases = append(l.Leases, h.Lease)
		p.follow(l.SKU, l.Strategy, h)
	}
	return l.Lock
}

// follow publishes a lease again if it is renewed before it expires.
func (p *Publisher) follow(sku, strategy string, h *heldLease) {
	if !h.Until.IsZero() || h.Expires.IsZero() {
		return
	}
	time.AfterFunc(time.Until(h.Expires)-quiet, func() {
		p.collect(func() {
			if h.Until.IsZero() && h.expires().After(h.Expires) {
				p.lock(sku, strategy, h.Fence).again(h)
			}
		})
	})
}

// again adds a lease that was published before.
func (l *leases) again(h *heldLease) {
	if !slices.Contains(l.known, h) {
		l.known = latest(l.known, h)
	}
}

// latest appends to a list that keeps at most eventLeases elements.
func latest[T any](list []T, x T) []T {
	if len(list) == eventLeases {
		copy(list, list[1:])
		list = list[:eventLeases-1]
	}
	return append(list, x)
}
