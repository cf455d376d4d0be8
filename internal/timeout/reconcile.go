package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

const (
	tailEvery    = time.Second
	tailBack     = 30 * time.Second // how far the first look at new timers goes back
	tailOverlap  = 2 * time.Second  // how long a transaction may take from its insert to its commit
	tailYoungest = time.Second      // what is younger is about to be pushed, and no repair
	horizonEvery = 10 * time.Second
	horizonAhead = 30 * time.Second // at least; twice the pace if that is more
	driftEvery   = time.Minute
	driftLeast   = 5000 // a difference that two counts at two moments, and what is in hand, can make
)

// reconcile puts the hints that should be there and are not, until ctx ends, or it turns out
// that somebody else has the office.
func (w *worker) reconcile(ctx context.Context, office Office, resign context.CancelCauseFunc) {
	r := &reconciler{w: w, office: office, local: w.q.local()}
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
	w       *worker
	office  Office
	local   bool
	tailed  time.Time // up to when new timers have been seen, by the database's clock
	horizon time.Time // when they were last done, here
	drift   time.Time
	adopt   time.Time
	drop    time.Time
}

// holds reports whether this instance still has the office. What follows goes to the index,
// which knows no terms, and where a hint that is put twice does no harm.
func (r *reconciler) holds(ctx context.Context, resign context.CancelCauseFunc) bool {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := r.office.Check(call, nil)
	switch {
	case err == nil:
		return true
	case errors.Is(err, dlock.ErrFenced):
		resign(err)
	default:
		r.w.q.failed(ctx, r.w.kind, "office", err)
	}
	return false
}

// round does what is due. Each part fails alone, and is repeated in the next round.
func (r *reconciler) round(ctx context.Context) {
	r.every(ctx, &r.adopt, horizonEvery, "adopt", r.adoptLanes)
	if r.local {
		return
	}
	r.every(ctx, &r.horizon, horizonEvery, "horizon", r.lookAhead)
	if err := r.tail(ctx); err != nil {
		r.w.q.failed(ctx, r.w.kind, "tail", err)
	}
	r.every(ctx, &r.drift, driftEvery, "drift", r.compare)
	r.every(ctx, &r.drop, driftEvery, "drop lanes", r.dropLanes)
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

// tail puts hints for what was committed lately and is due before the horizon comes
// round: its scheduler may have died between the commit and the push.
func (r *reconciler) tail(ctx context.Context) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	from, to := now.Add(-tailBack), now.Add(-tailYoungest)
	if from.Before(r.tailed) {
		from = r.tailed
	}
	n := Newcomers{
		Kind: r.w.kind, Lane: r.w.q.cfg.Lane, Limit: pageMax,
		From: from, To: to, Later: now, Before: now.Add(2 * horizonEvery),
	}
	err = r.pages(ctx, RepairTail, func(after Row) ([]Row, error) {
		n.After = after
		return r.w.q.store.Tail(ctx, n)
	}, func(Row) bool { return true })
	if err == nil {
		r.tailed = to.Add(-tailOverlap)
	}
	return err
}

// lookAhead puts hints for all that is due soon, so that what was lost in any way
// is not late.
func (r *reconciler) lookAhead(ctx context.Context) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	f := Filter{Kind: r.w.kind, State: Open, Until: now.Add(max(horizonAhead, 2*r.w.q.pace())), Limit: pageMax}
	first := Row{Timer: Timer{Kind: r.w.kind, ID: " "}, Next: now} // before all of that moment
	return r.pages(ctx, RepairHorizon, func(after Row) ([]Row, error) {
		if f.After = after; after.ID == "" {
			f.After = first
		}
		return r.w.q.store.List(ctx, f)
	}, func(row Row) bool { return row.CreatedAt.Before(now.Add(-tailYoungest)) })
}

// pages puts hints for the rows of all pages that are of this kind and lane, and wanted.
func (r *reconciler) pages(ctx context.Context, why Reason, page func(after Row) ([]Row, error), wanted func(Row) bool) error {
	for after := (Row{}); ; {
		rows, err := page(after)
		if err != nil {
			return err
		}
		var hints []Hint
		for _, row := range rows {
			if row.Kind == r.w.kind && row.Lane == r.w.q.cfg.Lane && wanted(row) {
				hints = append(hints, Hint{ID: row.ID, At: row.Next})
			}
		}
		added, err := r.w.q.putMissing(ctx, r.w.kind, hints)
		r.w.repaired(why, added)
		if err != nil || len(rows) < pageMax {
			return err
		}
		after = rows[len(rows)-1]
	}
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

// adoptLanes takes over timers of lanes without a consumer; what is due soon gets its hint
// from the next look ahead.
func (r *reconciler) adoptLanes(ctx context.Context) error {
	n, err := r.w.adoptLanes(ctx, r.office)
	if n > 0 {
		r.horizon = time.Time{}
	}
	return err
}

// adoptLanes takes over timers of lanes without a consumer, if this instance is of base.
func (w *worker) adoptLanes(ctx context.Context, office Office) (all int, err error) {
	for more := w.q.cfg.Lane == Base; more; {
		n, err := w.q.store.Adopt(ctx, office, silence, pageMax)
		w.repaired(RepairAdopt, n)
		all += n
		if err != nil {
			return all, err
		}
		more = n == pageMax
	}
	return all, nil
}

// dropLanes deletes what the index has of lanes without a consumer, if this instance is of base:
// hints of adopted timers, and of timers that another lane has cancelled. A lane whose consumers
// come back finds its index wiped, and its leader rebuilds it.
func (r *reconciler) dropLanes(ctx context.Context) error {
	if r.w.q.cfg.Lane != Base {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	lanes, err := r.w.q.store.SilentLanes(call, silence)
	for _, lane := range lanes {
		err = errors.Join(err, r.w.q.index.Drop(call, r.w.kind, lane))
	}
	return err
}

// compare counts on both sides. An index that knows much less than it should has
// lost something without knowing it, as a replica does that takes over.
func (r *reconciler) compare(ctx context.Context) error {
	counts, err := r.w.q.store.Count(ctx)
	if err != nil {
		return err
	}
	pending, err := r.w.q.index.Pending(ctx, r.w.kind, r.w.q.cfg.Lane)
	if err != nil {
		return fmt.Errorf("timeout: count hints: %w", err)
	}
	open := counts[Shard{Kind: r.w.kind, Lane: r.w.q.cfg.Lane}][Open]
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
