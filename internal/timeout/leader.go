package timeout

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
)

const (
	electEvery = time.Second
	electLimit = 2 * time.Second // of one attempt
	resignFor  = 5 * time.Second // how long one who could not lead lets others try
)

// errResigned is the cause of the end of a leadership whose database does not answer.
var errResigned = errors.New("timeout: the leader cannot reach its database")

// elect sweeps and reconciles while this instance is the leader of the kind and lane, until
// ctx ends. While the lock service does not answer everybody stands in: without a sweep
// overdue timers would be left alone just when the index, which may be the same server, is away.
func (w *worker) elect(ctx context.Context) {
	if w.q.cfg.Leader == nil {
		w.leadAnyway(ctx)
		return
	}
	standing := &spell{w: w}
	defer standing.end()
	for ctx.Err() == nil {
		wait := electEvery
		lease, err := w.campaign(ctx)
		switch {
		case err == nil:
			standing.end()
			if resigned := w.leadUnder(ctx, lease); resigned {
				wait = resignFor
			}
		case errors.Is(err, dlock.ErrHeld):
			standing.end()
		default:
			w.q.failed(ctx, w.kind, "elect", err)
			standing.begin(ctx)
		}
		backoff.Sleep(ctx, wait)
	}
}

func (w *worker) campaign(ctx context.Context) (*dlock.Lease, error) {
	call, cancel := context.WithTimeout(ctx, electLimit)
	defer cancel()
	return w.q.cfg.Leader.TryAcquire(call, w.duty())
}

// duty names what the leader of the kind and lane does.
func (w *worker) duty() string { return "timeout:" + w.q.cfg.Lane + ":" + w.kind }

// leadUnder leads until the lease or ctx ends, the database is away too long, or it turns out
// that somebody else has taken the office.
func (w *worker) leadUnder(ctx context.Context, lease *dlock.Lease) (resigned bool) {
	defer lease.Release(ctx) //nolint:errcheck // The TTL frees it otherwise.
	held, cancel := lease.Context(ctx)
	defer cancel()
	office, err := w.takeOffice(held, lease)
	if err == nil {
		err = w.lead(held, office)
	}
	deposed := errors.Is(err, dlock.ErrFenced)
	if deposed {
		w.q.failed(ctx, w.kind, "lead", err)
	}
	return deposed || errors.Is(err, errResigned)
}

// takeOffice makes the database refuse the work of leaders of before.
func (w *worker) takeOffice(ctx context.Context, lease *dlock.Lease) (Office, error) {
	if w.q.cfg.Offices == nil {
		return nil, nil
	}
	for began := time.Now(); time.Since(began) <= resignAfter; backoff.Sleep(ctx, electEvery) {
		call, cancel := context.WithTimeout(ctx, storeLimit)
		office, err := w.q.cfg.Offices.TakeOffice(call, w.duty(), lease)
		cancel()
		if err == nil || ctx.Err() != nil {
			return office, err
		}
		w.q.failed(ctx, w.kind, "office", err)
	}
	return nil, errResigned
}

// leadAnyway leads until ctx ends: there are no elections, and nobody to resign in favour of.
func (w *worker) leadAnyway(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.lead(ctx, nil); errors.Is(err, errResigned) {
			w.q.failed(ctx, w.kind, "lead", err)
		}
		backoff.Sleep(ctx, electEvery)
	}
}

// spell is a time without a leader in which this instance stands in.
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
	s.done.Go(func() { s.w.standIn(ctx) })
}

func (s *spell) end() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.done.Wait()
	s.stop = nil
}

// lead sweeps and reconciles until ctx ends, the database has been away for too long, or it
// refuses the office, and returns why.
func (w *worker) lead(ctx context.Context, office Office) error {
	w.q.observer.Leading(w.kind, true)
	defer w.q.observer.Leading(w.kind, false)
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	var parts sync.WaitGroup
	parts.Go(func() { w.sweeps(ctx, office, resign) })
	parts.Go(func() { w.reconcile(ctx, office, resign) })
	parts.Wait()
	return context.Cause(ctx)
}
