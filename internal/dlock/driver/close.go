package driver

import (
	"context"
	"maps"
	"slices"
	"sync"

	"example.com/shop/internal/dlock"
)

// Close calls [Renewer.Shut] and releases the held grants; a grant with [dlock.Grant.Abandon] releases itself. If ctx
// ends first, Close returns the error of ctx, and the rest expires by its TTL.
func (r *Renewer) Close(ctx context.Context) error {
	var releases sync.WaitGroup
	for _, h := range r.Shut() {
		if h.Grant().Abandon == nil {
			releases.Go(func() { h.Free(ctx) })
		}
	}
	return Await(ctx, releases.Wait) // releases are bounded
}

// Shut ends the leases of all grants as lost, with the reason [dlock.Closed]: nobody renews them any
// more, so no holder may consider them valid. A grant that is made later is lost at once. It
// does not block, and returns the grants that had not ended before.
func (r *Renewer) Shut() []*dlock.Hold {
	r.mu.Lock()
	r.closed = true
	holds := slices.Collect(maps.Keys(r.kept))
	r.mu.Unlock()
	return slices.DeleteFunc(holds, func(h *dlock.Hold) bool { return !h.Lose(&dlock.LostError{Reason: dlock.Closed}) })
}
