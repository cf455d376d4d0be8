package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

const (
	reconcileEvery = time.Second
	youngest       = time.Second      // a younger timer may have its entry on the way
	nearAhead      = time.Second      // how far each round looks ahead, beyond twice the pace
	farEvery       = 10 * time.Second // how often a round looks further ahead
	farAhead       = 30 * time.Second // at least
	driftEvery     = time.Minute
	driftLeast     = 5000 // a difference that timers in progress, and two counts at two moments, explain
)

// reconcile puts entries that are missing until ctx ends, or another instance has claimed the role.
func (w *worker) reconcile(ctx context.Context, token LeaderToken, resign context.CancelCauseFunc) {
	r := &reconciler{w: w, token: token, local: w.q.local()}
	for {
		if r.holds(ctx, resign) {
			r.round(ctx)
		}
		next := time.NewTimer(w.q.pace())
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-w.wiped.found:
			next.Stop()
			if r.holds(ctx, resign) {
				r.rebuild(ctx)
			}
		case <-next.C:
		}
	}
}

type reconciler struct {
	w        *worker
	token    LeaderToken
	local    bool
	far      time.Time // when it last looked far ahead, here
	drift    time.Time // when these were last done
	reassign time.Time
	drop     time.Time
}

// holds reports whether this instance still has the role. The index cannot fence the writes that
// follow, and an entry that is put twice does no harm.
func (r *reconciler) holds(ctx context.Context, resign context.CancelCauseFunc) bool {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := r.token.Check(call, nil)
	switch {
	case err == nil:
		return true
	case errors.Is(err, dlock.ErrFenced):
		resign(err)
	default:
		r.w.q.failed(ctx, r.w.kind, "check role", err)
	}
	return false
}

// round runs the parts that are due. Each part fails alone, and is retried in the next round.
func (r *reconciler) round(ctx context.Context) {
	r.every(ctx, &r.reassign, farEvery, "reassign", r.reassignOrphans)
	if r.local {
		return
	}
	ahead, far := nearAhead+2*r.w.q.pace(), time.Since(r.far) >= farEvery
	if far {
		ahead = max(ahead, farAhead)
	}
	if err := r.lookAhead(ctx, ahead); err != nil {
		r.w.q.failed(ctx, r.w.kind, "look ahead", err)
	} else if far {
		r.far = time.Now()
	}
	r.every(ctx, &r.drift, driftEvery, "drift", r.compare)
	r.every(ctx, &r.drop, driftEvery, "drop partitions", r.dropOrphans)
}

func (r *reconciler) every(ctx context.Context, last *time.Time, d time.Duration, name string, f func(context.Context) error) {
	if ctx.Err() != nil || !last.IsZero() && time.Since(*last) < d {
		return
	}
	if err := f(ctx); err != nil {
		r.w.q.failed(ctx, r.w.kind, name, err)
		return
	}
	*last = time.Now()
}

// lookAhead puts the missing entries of all timers that are due within a time. They are missing after the death of
// a scheduler between its commit and the push, or when the index has lost its last writes.
func (r *reconciler) lookAhead(ctx context.Context, ahead time.Duration) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	f := Filter{Kind: r.w.kind, State: Open, Until: now.Add(ahead), Limit: pageMax}
	f.After = Row{Timer: Timer{Kind: r.w.kind, ID: " "}, Next: now} // before all of that moment
	for rows, err := range r.w.q.pages(ctx, f) {
		if err != nil {
			return err
		}
		var entries []Entry
		for _, row := range rows {
			if row.Partition == r.w.q.cfg.Partition && row.CreatedAt.Before(now.Add(-youngest)) {
				entries = append(entries, Entry{ID: row.ID, At: row.Next})
			}
		}
		added, err := r.w.q.putMissing(ctx, r.w.kind, entries)
		r.w.repaired(RepairLookAhead, added)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) repaired(why Reason, n int) {
	if n > 0 {
		w.q.observer.Repaired(w.kind, why, n)
	}
}

func (r *reconciler) now(ctx context.Context) (time.Time, error) {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	return r.w.q.store.Now(call)
}

// reassignOrphans reassigns orphaned timers. The next scan ahead puts the entries of those that are due soon.
func (r *reconciler) reassignOrphans(ctx context.Context) error {
	n, err := r.w.reassignOrphans(ctx, r.token)
	if n > 0 {
		r.far = time.Time{}
	}
	return err
}

// reassignOrphans moves timers of partitions without a consumer to Base, if this instance consumes Base.
func (w *worker) reassignOrphans(ctx context.Context, token LeaderToken) (all int, err error) {
	for more := w.q.cfg.Partition == Base; more; {
		n, err := w.q.store.Reassign(ctx, token, orphanedAfter, pageMax)
		w.repaired(RepairReassign, n)
		all += n
		if err != nil {
			return all, err
		}
		more = n == pageMax
	}
	return all, nil
}

// dropOrphans removes the entries of partitions without a consumer, if this instance consumes Base. They are of
// reassigned timers, and of timers that another partition has cancelled. If the partition gets a consumer
// again, its leader rebuilds the index.
func (r *reconciler) dropOrphans(ctx context.Context) error {
	if r.w.q.cfg.Partition != Base {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	partitions, err := r.w.q.store.OrphanedPartitions(call, orphanedAfter)
	for _, partition := range partitions {
		err = errors.Join(err, r.w.q.index.Drop(call, r.w.kind, partition))
	}
	return err
}

// compare counts rows and entries. If the index has far fewer, it has lost entries without
// reporting it, as a replica does that takes over, and is rebuilt.
func (r *reconciler) compare(ctx context.Context) error {
	counts, err := r.w.q.store.Count(ctx)
	if err != nil {
		return err
	}
	pending, err := r.w.q.index.Pending(ctx, r.w.kind, r.w.q.cfg.Partition)
	if err != nil {
		return fmt.Errorf("timeout: count entries: %w", err)
	}
	open := counts[Shard{Kind: r.w.kind, Partition: r.w.q.cfg.Partition}][Open]
	if open-pending > max(open/100, driftLeast) {
		r.rebuild(ctx)
	}
	return nil
}

func (r *reconciler) rebuild(ctx context.Context) {
	n, err := r.w.q.rebuild(ctx, r.w.kind)
	r.w.repaired(RepairRebuild, n)
	if err != nil {
		r.w.q.failed(ctx, r.w.kind, "rebuild", err) // the next claim reports the loss again
	}
}
