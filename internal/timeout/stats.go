package timeout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Stats counts the timers of a kind and partition.
type Stats struct {
	Kind, Partition string
	Open            int           // rows: scheduled and not handled, or waiting for another attempt
	Dead            int           // rows that wait until an operator redrives or cancels them
	Pending         int           // entries in the index
	Overdue         time.Duration // for how long the earliest open timer of the kind, in any partition, has been due
	Paused          bool          // the kind
	Unindexed       bool          // the index did not answer, so that Pending is unknown
}

// Stats counts timers, ordered by kind and partition. It blocks for the database,
// which counts all rows, and for the index. An index that does not answer is no error.
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
		if s := (Shard{Kind: kind, Partition: q.cfg.Partition}); counts[s] == nil {
			counts[s] = map[State]int{}
		}
	}
	q.mu.Unlock()
	var all []Stats
	for s, n := range counts {
		st := Stats{Kind: s.Kind, Partition: s.Partition, Open: n[Open], Dead: n[Dead], Paused: slices.Contains(paused, s.Kind)}
		if st.Overdue, err = q.overdue(ctx, s.Kind, now); err != nil {
			return nil, fmt.Errorf("timeout: stats: %w", err)
		}
		call, cancel := context.WithTimeout(ctx, callLimit)
		st.Pending, err = q.index.Pending(call, s.Kind, s.Partition)
		cancel()
		st.Unindexed = err != nil
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Partition, b.Partition))
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
