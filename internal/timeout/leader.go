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
	resignFor  = 5 * time.Second // pause after a resignation, in which others can be elected
)

// errResigned ends a leadership whose database does not answer.
var errResigned = errors.New("timeout: the leader cannot reach its database")

// elect scans and reconciles while this instance is the leader of the kind and partition, until ctx ends. While the
// lock service does not answer, every instance runs the fallback scan. The index may be on the same server, and then
// nothing else finds overdue timers.
func (w *worker) elect(ctx context.Context) {
	if w.q.cfg.Leader == nil {
		w.leadAnyway(ctx)
		return
	}
	standby := &fallback{w: w}
	defer standby.end()
	for ctx.Err() == nil {
		wait := electEvery
		lease, err := w.campaign(ctx)
		switch {
		case err == nil:
			standby.end()
			if resigned := w.leadUnder(ctx, lease); resigned {
				wait = resignFor
			}
		case errors.Is(err, dlock.ErrHeld):
			standby.end()
		default:
			w.q.failed(ctx, w.kind, "elect", err)
			standby.begin(ctx)
		}
		backoff.Sleep(ctx, wait)
	}
}

func (w *worker) campaign(ctx context.Context) (*dlock.Lease, error) {
	call, cancel := context.WithTimeout(ctx, electLimit)
	defer cancel()
	return w.q.cfg.Leader.TryAcquire(call, w.role())
}

// role names the leader role of the kind and partition.
func (w *worker) role() string { return "timeout:" + w.q.cfg.Partition + ":" + w.kind }

// leadUnder leads until the lease or ctx ends, the database does not answer for too long, or another
// instance has claimed the role.
func (w *worker) leadUnder(ctx context.Context, lease *dlock.Lease) (resigned bool) {
	defer lease.Release(ctx) //nolint:errcheck // The TTL frees it otherwise.
	held, cancel := lease.Context(ctx)
	defer cancel()
	token, err := w.claimRole(held, lease)
	if err == nil {
		err = w.lead(held, token)
	}
	superseded := errors.Is(err, dlock.ErrFenced)
	if superseded {
		w.q.failed(ctx, w.kind, "lead", err)
	}
	return superseded || errors.Is(err, errResigned)
}

// claimRole claims the role, so that the database refuses the work of previous leaders.
func (w *worker) claimRole(ctx context.Context, lease *dlock.Lease) (LeaderToken, error) {
	if w.q.cfg.Roles == nil {
		return nil, nil
	}
	for began := time.Now(); time.Since(began) <= resignAfter; backoff.Sleep(ctx, electEvery) {
		call, cancel := context.WithTimeout(ctx, storeLimit)
		token, err := w.q.cfg.Roles.ClaimRole(call, w.role(), lease)
		cancel()
		if err == nil || ctx.Err() != nil {
			return token, err
		}
		w.q.failed(ctx, w.kind, "claim role", err)
	}
	return nil, errResigned
}

// leadAnyway leads without elections until ctx ends.
func (w *worker) leadAnyway(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.lead(ctx, nil); errors.Is(err, errResigned) {
			w.q.failed(ctx, w.kind, "lead", err)
		}
		backoff.Sleep(ctx, electEvery)
	}
}

// fallback runs the fallback scan while no leader can be elected.
type fallback struct {
	w    *worker
	stop context.CancelFunc
	done sync.WaitGroup
}

func (s *fallback) begin(ctx context.Context) {
	if s.stop != nil {
		return
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.done.Go(func() { s.w.fallbackScan(ctx) })
}

func (s *fallback) end() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.done.Wait()
	s.stop = nil
}

// lead scans and reconciles until ctx ends, the database does not answer for too long, or it refuses the
// leader token. It returns the cause.
func (w *worker) lead(ctx context.Context, token LeaderToken) error {
	w.q.observer.Leading(w.kind, true)
	defer w.q.observer.Leading(w.kind, false)
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	var parts sync.WaitGroup
	parts.Go(func() { w.scanOverdue(ctx, token, resign) })
	parts.Go(func() { w.reconcile(ctx, token, resign) })
	parts.Wait()
	return context.Cause(ctx)
}
