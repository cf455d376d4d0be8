package cohort

import (
	"context"
	"sync/atomic"
)

// handing is a batch whose lease may end before its commit does.
type handing struct {
	last func() bool // reports whether no other batch is to follow under the lease
	stop func() bool // cuts the work off from the lease, and reports whether it was held until then

	open   atomic.Bool   // to be handed over
	closed chan struct{} // once it is
}

type handingKey struct{}

// HandOver says, within Config.Commit, whose context ctx is, that the lease has done its part:
// whatever else wants to change what the batch changes is kept waiting by other means until the
// commit is over, such as the lock of a row. If no other batch is to follow under the lease it is
// given back at once, while Commit goes on, and the next holder loses no time; from then on the context
// of Commit does not end with the lease. Should the batch have to be split then, Commit is called for its
// parts with the same fence, which nobody may have passed meanwhile. Otherwise HandOver does nothing, as when
// one of the batch is put back into the line after an error. It does not block.
func HandOver(ctx context.Context) {
	h, _ := ctx.Value(handingKey{}).(*handing)
	if h == nil || !h.open.Load() || !h.last() || !h.open.CompareAndSwap(true, false) || !h.stop() {
		return
	}
	close(h.closed)
}

// handing returns a context for the work on tickets under a lease whose context is leased. It ends
// with that, until the batch is handed over.
func (g *Group[T]) handing(leased context.Context, tickets []*ticket[T], last func() bool) (context.Context, context.CancelCauseFunc, *handing) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(leased))
	h := &handing{last: last, closed: make(chan struct{})}
	h.stop = context.AfterFunc(leased, func() { cancel(context.Cause(leased)) })
	h.open.Store(g.untried(tickets))
	return context.WithValue(ctx, handingKey{}, h), cancel, h
}

// untried reports whether this is the first attempt of all tickets.
func (g *Group[T]) untried(tickets []*ticket[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tickets {
		if t.last != nil {
			return false
		}
	}
	return true
}
