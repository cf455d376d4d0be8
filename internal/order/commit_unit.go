package order

import (
	"context"
	"slices"

	"example.com/shop/internal/stock"
)

// unit is the part of a lane in a transaction: its first orders, under the locks that the lane has.
type unit struct {
	lane    *lane
	ctx     context.Context //nolint:containedctx // It ends with the lock; its values are those of an order.
	claims  []stock.Claim
	entries []*entry   // nil until a transaction takes them out of the lane
	round   *round     // that has its lease; nil: the lane needs none, or has a leader
	served  chan error // receives err for the leader; nil: the lane has none

	// Set by a transaction.
	apart   []*entry     // that are to be committed alone
	err     error        // why orders were put back
	counted bool         // its counter is notified before its orders are answered
	decided []settlement // the answers of a counted unit
}

// settlement is the answer to some orders.
type settlement struct {
	entries []*entry
	err     error
}

// sharable reports whether other units may be in the transaction of u: it locks all of its rows before it decides, and waits
// for nothing else.
func (u *unit) sharable() bool {
	return !slices.ContainsFunc(u.claims, func(c stock.Claim) bool { return c.Update.ReadsBefore() }) &&
		!slices.ContainsFunc(u.entries, func(e *entry) bool { return e.Queued || e.Uncertain })
}

// bounded reports whether u holds leases of several SKUs, and gives them up before it waits for a row.
func (u *unit) bounded() bool {
	leases := slices.ContainsFunc(u.claims, func(c stock.Claim) bool { return c.Fence.Token > 0 })
	return leases && len(u.claims) > 1 && u.sharable()
}

// part is orders of a unit that a transaction stores or leaves out together.
type part struct {
	unit    *unit
	entries []*entry
	batch   *Batch          // of the latest attempt
	ctx     context.Context //nolint:containedctx // That of the unit; it ends when all callers have gone.

	// Guarded by commitQueue.mu.
	callers int // of entries, whose contexts have not ended
	cancel  context.CancelCauseFunc
}

// drop counts a caller who has gone.
func (p *part) drop(why error) {
	if p.callers--; p.callers == 0 {
		p.cancel(why)
	}
}

// parts returns the parts of u. Orders that share a lease are one. In a shared transaction others are one each.
func (u *unit) parts(alone bool) (parts []*part) {
	if alone || u.round != nil || u.served != nil {
		return []*part{{unit: u, entries: u.entries}}
	}
	for _, e := range u.entries {
		parts = append(parts, &part{unit: u, entries: []*entry{e}})
	}
	return parts
}
