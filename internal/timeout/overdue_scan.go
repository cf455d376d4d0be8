package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

const (
	sweepEvery  = time.Second
	sweepGrace  = 2 * time.Second // how late the sweep lets a timer be
	resignAfter = 5 * time.Second // without an answer of the database
)

// sweeps handles overdue timers from the database alone, until ctx ends: what the
// index has lost, or could not lend, or what somebody claimed and died over. It needs no index.
// A leader that is deposed, or whose database does not answer, resigns.
func (w *worker) sweeps(ctx context.Context, office Office, resign context.CancelCauseFunc) {
	every := time.NewTicker(sweepEvery)
	defer every.Stop()
	answered := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		err := w.sweepAll(ctx, office)
		switch {
		case err == nil:
			answered = time.Now()
			continue
		case errors.Is(err, dlock.ErrFenced):
			resign(err)
			return
		}
		w.q.failed(ctx, w.kind, "sweep", err)
		if time.Since(answered) > resignAfter {
			resign(errResigned)
			return
		}
	}
}

// standIn does what the database alone decides, and orders cannot wait for, until ctx ends:
// nobody can be elected. It does nothing while the database knows of a leader.
func (w *worker) standIn(ctx context.Context) {
	every := time.NewTicker(sweepEvery)
	defer every.Stop()
	var vacant Office
	if w.q.cfg.Offices != nil {
		vacant = w.q.cfg.Offices.VacantOffice(w.duty())
	}
	var adopted time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		err := w.sweepAll(ctx, vacant)
		if err == nil && time.Since(adopted) >= farEvery {
			adopted = time.Now()
			_, err = w.adoptLanes(ctx, vacant)
		}
		if err != nil && !errors.Is(err, ErrLed) {
			w.q.failed(ctx, w.kind, "sweep", err)
		}
	}
}

// sweepAll sweeps until a sweep is not full. Each has a free slot, as a claim has.
func (w *worker) sweepAll(ctx context.Context, office Office) error {
	for w.resting() == 0 && w.take(ctx) {
		n, err := w.sweep(ctx, office)
		if err != nil || n < w.opts.Batch {
			return err
		}
	}
	return nil
}

// sweep takes over the slot of its caller. Nobody in this process has in hand what
// it starts: a handler that is slow is not given its timers once more.
func (w *worker) sweep(ctx context.Context, office Office) (int, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	now, err := w.q.store.Now(call)
	if err != nil {
		w.free()
		return 0, fmt.Errorf("timeout: read the time: %w", err)
	}
	got := time.Now()
	grace := sweepGrace
	if w.away.longerThan(grace) {
		grace = 0 // nobody has claimed anything lately that could be under way
	}
	rows, err := w.q.store.Sweep(call, office, w.kind, w.q.cfg.Lane, now.Add(-grace),
		ceil(now.Add(sweepLease)), w.opts.Batch)
	if err != nil {
		w.free()
		return 0, fmt.Errorf("timeout: sweep %q: %w", w.kind, err)
	}
	if len(rows) == 0 {
		w.free()
		return 0, nil
	}
	items := make([]*item, len(rows))
	for i, r := range rows {
		items[i] = &item{id: r.ID, row: r, attempt: r.Attempt, burned: r.Attempt - 1}
	}
	w.startSwept(ctx, items, now, got)
	return len(rows), nil
}

// startSwept handles what the sweep has claimed; see start.
func (w *worker) startSwept(ctx context.Context, items []*item, now, got time.Time) {
	w.handling.Go(func() {
		defer w.free()
		taken, _ := w.hands.add(items)
		defer w.hands.remove(taken)
		if len(taken) > 0 {
			w.q.observer.Repaired(w.kind, RepairSweep, len(taken))
			(&batch{w: w, stop: ctx, now: now, loaded: got}).handle(taken)
		}
	})
}
