package timeout

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

const (
	electEvery = time.Second
	electLimit = 2 * time.Second // of one attempt
	resignFor  = 5 * time.Second // how long one who could not lead lets others try
)

// errResigned is the cause of the end of a leadership whose database does not answer.
var errResigned = errors.New("timeout: the leader cannot reach its database")

// elect reconciles while this instance is the leader of the kind and lane, until ctx
// ends. While the lock service does not answer everybody leads: two leaders do some
// work twice, and none would leave overdue timers alone just when the index, which
// may be the same server, is away.
func (w *worker) elect(ctx context.Context) {
	if w.q.cfg.Leader == nil {
		w.leadAnyway(ctx)
		return
	}
	acting := &spell{w: w}
	defer acting.end()
	for ctx.Err() == nil {
		wait := electEvery
		lease, err := w.campaign(ctx)
		switch {
		case err == nil:
			acting.end()
			if resigned := w.leadUnder(ctx, lease); resigned {
				wait = resignFor
			}
		case errors.Is(err, dlock.ErrHeld):
			acting.end()
		default:
			w.q.failed(ctx, w.kind, "elect", err)
			acting.begin(ctx)
		}
		pause(ctx, wait)
	}
}

func (w *worker) campaign(ctx context.Context) (*dlock.Lease, error) {
	call, cancel := context.WithTimeout(ctx, electLimit)
	defer cancel()
	return w.q.cfg.Leader.TryAcquire(call, "timeout:"+w.q.cfg.Lane+":"+w.kind)
}

// leadUnder leads until the lease or ctx ends, or the database is away too long.
func (w *worker) leadUnder(ctx context.Context, lease *dlock.Lease) (resigned bool) {
	defer lease.Release(ctx) //nolint:errcheck // The TTL frees it otherwise.
	held, cancel := lease.Context(ctx)
	defer cancel()
	return errors.Is(w.lead(held), errResigned)
}

// leadAnyway leads until ctx ends: there is nobody to resign in favour of.
func (w *worker) leadAnyway(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.lead(ctx); errors.Is(err, errResigned) {
			w.q.failed(ctx, w.kind, "lead", err)
		}
		pause(ctx, electEvery)
	}
}

// spell is a leadership without a lease.
type spell struct {
	w    *worker
	stop context.CancelFunc
	done sync.WaitGroup
}

func (s *spell) begin(ctx context.Context) {
	if s.stop != nil {
		return
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.done.Go(func() { s.w.leadAnyway(ctx) })
}

func (s *spell) end() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.done.Wait()
	s.stop = nil
}

// lead reconciles until ctx ends or the database has been away for too long, and returns why.
func (w *worker) lead(ctx context.Context) error {
	w.q.observer.Leading(w.kind, true)
	defer w.q.observer.Leading(w.kind, false)
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	var parts sync.WaitGroup
	parts.Go(func() { w.sweeps(ctx, resign) })
	parts.Go(func() { w.reconcile(ctx) })
	parts.Wait()
	return context.Cause(ctx)
}
