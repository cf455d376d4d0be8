package timeout

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	scanEvery     = time.Second
	scanGrace     = 2 * time.Second // a timer that is less overdue is left to the index
	reassignEvery = 10 * time.Second
)

// scanOverdue handles overdue timers from the database alone, until ctx ends: timers whose entry was lost, and
// timers whose consumer died. It reassigns orphaned timers, too.
//
// The overdue scan runs every second, and takes timers that are more than 2 s late. It needs
// the database alone, and calls the same handler by the same path. Every instance runs it: a scan locks the rows that it
// takes, and skips those of others. No pass can replace it: a pass needs the index, and an index entry does not count
// the attempt of a timer that kills its process.
func (w *worker) scanOverdue(ctx context.Context) {
	every := time.NewTicker(scanEvery)
	defer every.Stop()
	var reassigned time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		err := w.scanAll(ctx)
		if err == nil && time.Since(reassigned) >= reassignEvery {
			reassigned = time.Now()
			err = w.reassignOrphans(ctx)
		}
		if err != nil {
			w.q.failed(ctx, w.kind, "overdue scan", err)
		}
	}
}

// reassignOrphans moves timers of partitions without a consumer to Base, if this instance consumes Base.
func (w *worker) reassignOrphans(ctx context.Context) error {
	for more := w.q.cfg.Partition == Base; more; {
		n, err := w.q.store.Reassign(ctx, orphanedAfter, pageMax)
		if n > 0 {
			w.q.observer.Repaired(w.kind, RepairReassign, n)
		}
		if err != nil {
			return err
		}
		more = n == pageMax
	}
	return nil
}

// scanAll scans until a scan is not full. Each scan needs a free slot, as a claim does.
func (w *worker) scanAll(ctx context.Context) error {
	for w.resting() == 0 && w.take(ctx) {
		n, err := w.scan(ctx)
		if err != nil || n < w.opts.Batch {
			return err
		}
	}
	return nil
}

// scan claims a batch of overdue timers and starts its handling in the caller's slot. It skips timers that are
// in progress in this process.
func (w *worker) scan(ctx context.Context) (int, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	now, err := w.q.store.Now(call)
	if err != nil {
		w.free()
		return 0, fmt.Errorf("timeout: read the time: %w", err)
	}
	got := time.Now()
	grace := scanGrace
	if since := w.away.Load(); since != nil && got.Sub(*since) > grace {
		grace = 0 // no consumer can have claimed them lately
	}
	rows, err := w.q.store.ClaimOverdue(call, w.kind, w.q.cfg.Partition, now.Add(-grace),
		ceil(now.Add(scanLease)), w.opts.Batch)
	if err != nil {
		w.free()
		return 0, fmt.Errorf("timeout: overdue scan of %q: %w", w.kind, err)
	}
	if len(rows) == 0 {
		w.free()
		return 0, nil
	}
	items := make([]*item, len(rows))
	for i, r := range rows {
		items[i] = &item{id: r.ID, row: r, attempt: r.Attempt, counted: r.Attempt - 1}
	}
	w.startScanned(ctx, items, now, got)
	return len(rows), nil
}

// startScanned handles the timers of a scan; see start.
func (w *worker) startScanned(ctx context.Context, items []*item, now, got time.Time) {
	w.handling.Go(func() {
		defer w.free()
		taken, _ := w.inFlight.add(items)
		defer w.inFlight.remove(taken)
		b := &batch{w: w, stop: ctx, now: now, loaded: got}
		if due := b.claimed(taken); len(due) > 0 {
			w.q.observer.Repaired(w.kind, RepairOverdue, len(due))
			b.handle(due)
		}
	})
}

// claimed returns the items whose rows are still as the scan has claimed them. A row may have been in progress in this
// process during the scan, and settled before the reply.
func (b *batch) claimed(items []*item) []*item {
	rows, ok := b.read(items)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool {
		row, stored := rows[it.id]
		return !stored || row.State != Open || row.Attempt != it.attempt || !row.Due.Equal(it.row.Due)
	})
}
