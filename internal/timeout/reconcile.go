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
	youngest       = time.Second      // what is younger is about to be pushed, and no repair
	nearAhead      = time.Second      // how far each round looks ahead, beyond twice the pace
	farEvery       = 10 * time.Second // how often a round looks further ahead
	farAhead       = 30 * time.Second // at least
	driftEvery     = time.Minute
	driftLeast     = 5000 // a difference that two counts at two moments, and what is in hand, can make
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
	w      *worker
	office Office
	local  bool
	far    time.Time // when it last looked far ahead, here
	drift  time.Time // when these were last done
	adopt  time.Time
	drop   time.Time
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
	r.every(ctx, &r.adopt, farEvery, "adopt", r.adoptLanes)
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

// lookAhead puts hints for all that is due within a time, so that what was lost in any way is not late:
// a scheduler that died between its commit and the push, an index that lost its last writes.
func (r *reconciler) lookAhead(ctx context.Context, ahead time.Duration) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	f := Filter{Kind: r.w.kind, State: Open, Until: now.Add(ahead), Limit: pageMax}
	f.After = Row{Timer: Timer{Kind: r.w.kind, ID: " "}, Next: now} // before all of that moment
	for {
		rows, err := r.w.q.store.List(ctx, f)
		if err != nil {
			return err
		}
		var hints []Hint
		for _, row := range rows {
			if row.Lane == r.w.q.cfg.Lane && row.CreatedAt.Before(now.Add(-youngest)) {
				hints = append(hints, Hint{ID: row.ID, At: row.Next})
			}
		}
		added, err := r.w.q.putMissing(ctx, r.w.kind, hints)
		r.w.repaired(RepairLookAhead, added)
		if err != nil || len(rows) < pageMax {
			return err
		}
		f.After = rows[len(rows)-1]
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
		r.far = time.Time{}
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
