package timeout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Stats is how many timers of a kind and lane there are.
type Stats struct {
	Kind, Lane string
	Open       int           // rows: scheduled and not worked off, or waiting for another attempt
	Dead       int           // rows that wait for somebody to redrive or cancel them
	Pending    int           // hints in the index
	Overdue    time.Duration // for how long the earliest open timer of the kind, in any lane, has been due
	Paused     bool          // the kind
	Unindexed  bool          // the index did not answer, so that Pending is not known
}

// Stats counts what there is, by kind and lane, in the order of these. It blocks for the database,
// which counts all rows, and the index, whose absence is not an error.
func (q *Queue) Stats(ctx context.Context) ([]Stats, error) {
	counts, err := q.store.Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("timeout: stats: %w", err)
	}
	paused, err := q.store.Paused(ctx)
	if err != nil {
		return nil, fmt.Errorf("timeout: stats: %w", err)
	}
	now, err := q.store.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("timeout: stats: %w", err)
	}
	if counts == nil {
		counts = map[Shard]map[State]int{}
	}
	q.mu.Lock()
	for kind := range q.kinds {
		if s := (Shard{Kind: kind, Lane: q.cfg.Lane}); counts[s] == nil {
			counts[s] = map[State]int{}
		}
	}
	q.mu.Unlock()
	var all []Stats
	for s, n := range counts {
		st := Stats{Kind: s.Kind, Lane: s.Lane, Open: n[Open], Dead: n[Buried], Paused: slices.Contains(paused, s.Kind)}
		if st.Overdue, err = q.overdue(ctx, s.Kind, now); err != nil {
			return nil, fmt.Errorf("timeout: stats: %w", err)
		}
		call, cancel := context.WithTimeout(ctx, callLimit)
		st.Pending, err = q.index.Pending(call, s.Kind, s.Lane)
		cancel()
		st.Unindexed = err != nil
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lane, b.Lane))
	})
	return all, nil
}

func (q *Queue) overdue(ctx context.Context, kind string, now time.Time) (time.Duration, error) {
	rows, err := q.store.List(ctx, Filter{Kind: kind, State: Open, Limit: 1})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return max(0, now.Sub(rows[0].Next)), nil
}
