package dlock

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Close calls [Renewer.Shut], releases what was held, except by grants with [Grant.Abandon],
// which do that, and waits for it until ctx ends: then it returns the error of ctx, and the
// rest is left to the TTL.
func (r *Renewer) Close(ctx context.Context) error {
	var releases sync.WaitGroup
	for _, h := range r.shut() {
		if h.g.Abandon == nil {
			releases.Go(func() { h.giveBack(ctx) })
		}
	}
	done := make(chan struct{})
	go func() { // ends with the releases, which are bounded
		defer close(done)
		releases.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return Ended(ctx)
	}
}

// Shut ends the leases of all grants as lost, with the reason [Closed]: nobody renews them any
// more, so no holder may consider them valid. A grant that is made later is lost at once. It
// does not block.
func (r *Renewer) Shut() { r.shut() }

// shut returns the grants that had not ended before.
func (r *Renewer) shut() []*hold {
	r.mu.Lock()
	r.closed = true
	holds := slices.Collect(maps.Keys(r.holds))
	r.mu.Unlock()
	return slices.DeleteFunc(holds, func(h *hold) bool { return !h.shut() })
}

// shut ends all leases because the client was closed, and reports whether they had not ended before.
func (h *hold) shut() bool { return h.lose(&LostError{Reason: Closed}) }

// giveBack releases what no lease holds any more. If it fails, the TTL frees it, or the backend knows.
func (h *hold) giveBack(ctx context.Context) { _ = h.give(ctx, h.g.Release) }
