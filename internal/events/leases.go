package events

import "time"

// eventLeases limits the leases, and the refusals, of one event.
const eventLeases = 32

// leases collects what the next event about the lock of a SKU contains. Publisher.mu protects it.
type leases struct {
	Lock

	held []*heldLease // the latest ones
}

// heldLease is a lease, and whether an event without its end was published.
type heldLease struct {
	Lease

	published bool
}

// Lock publishes that this instance was granted a lease of a SKU, for which it has waited since asked. Call ended once the lease is no
// longer used.
func (p *Publisher) Lock(sku, strategy string, fence uint64, asked time.Time) (ended func()) {
	lease := &heldLease{Lease: Lease{Fence: fence, Asked: asked.UTC(), From: time.Now().UTC()}}
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
				l.held = latest(l.held, lease)
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

// lock returns what is collected about the lock of a SKU.
func (p *Publisher) lock(sku, strategy string, fence uint64) *leases {
	l := p.locks[sku]
	if l == nil {
		l = &leases{Lock: Lock{SKU: sku, Strategy: strategy, Holder: p.cfg.Instance, Fence: fence}}
		p.locks[sku] = l
	}
	return l
}

// event returns the event, and marks its leases as published.
func (l *leases) event() Lock {
	for _, h := range l.held {
		l.Leases = append(l.Leases, h.Lease)
		h.published = true
	}
	return l.Lock
}

// latest appends to a list that keeps at most eventLeases elements.
func latest[T any](list []T, x T) []T {
	if len(list) == eventLeases {
		copy(list, list[1:])
		list = list[:eventLeases-1]
	}
	return append(list, x)
}
