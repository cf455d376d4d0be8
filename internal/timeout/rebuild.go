package timeout

import (
	"context"
	"fmt"
)

// rebuild tells the index of all open timers of a kind in this lane, page by page,
// the soonest first, and that it has been told everything.
func (q *Queue) rebuild(ctx context.Context, kind string) (int, error) {
	n := 0
	for f := (Filter{Kind: kind, State: Open, Limit: pageMax}); ; {
		rows, err := q.store.List(ctx, f)
		if err != nil {
			return n, err
		}
		hints := make([]Hint, 0, len(rows))
		for _, r := range rows {
			if r.Lane == q.cfg.Lane {
				hints = append(hints, Hint{ID: r.ID, At: r.Next})
			}
		}
		added, err := q.putMissing(ctx, kind, hints)
		n += added
		if err != nil {
			return n, err
		}
		if len(rows) < pageMax {
			break
		}
		f.After = rows[len(rows)-1]
	}
	if err := q.index.Complete(ctx, kind, q.cfg.Lane); err != nil {
		return n, fmt.Errorf("timeout: complete the index: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.kinds[kind]; ok {
		w.wiped.repaired()
	}
	return n, nil
}

// putMissing puts hints that the index does not have, and wakes the loops here.
func (q *Queue) putMissing(ctx context.Context, kind string, hints []Hint) (int, error) {
	n := 0
	for len(hints) > 0 {
		chunk := hints[:min(len(hints), flushChunk)]
		call, cancel := context.WithTimeout(ctx, callLimit)
		added, err := q.index.Schedule(call, kind, q.cfg.Lane, true, chunk)
		cancel()
		n += added
		if err != nil {
			return n, fmt.Errorf("timeout: put hints: %w", err)
		}
		q.pushed(shardKey{kind, q.cfg.Lane}, chunk[0].At)
		hints = hints[len(chunk):]
	}
	return n, nil
}
