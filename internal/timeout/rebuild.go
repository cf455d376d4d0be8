package timeout

import (
	"context"
	"fmt"
	"slices"
)

// rebuild adds the entries of all open timers of a kind in this partition, by page and soonest first, and marks the
// index as complete.
func (q *Queue) rebuild(ctx context.Context, kind string) (int, error) {
	n := 0
	for rows, err := range q.pages(ctx, Filter{Kind: kind, State: Open, Limit: pageMax, Brief: true}) {
		if err != nil {
			return n, err
		}
		entries := make([]Entry, 0, len(rows))
		for _, r := range rows {
			if r.Partition == q.cfg.Partition {
				entries = append(entries, Entry{ID: r.ID, At: r.Next})
			}
		}
		added, err := q.putMissing(ctx, kind, entries)
		n += added
		if err != nil {
			return n, err
		}
	}
	if err := q.index.Complete(ctx, kind, q.cfg.Partition); err != nil {
		return n, fmt.Errorf("timeout: complete the index: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.kinds[kind]; ok {
		w.wiped.repaired()
	}
	return n, nil
}

// putMissing puts entries that the index does not have, and returns how many.
func (q *Queue) putMissing(ctx context.Context, kind string, entries []Entry) (int, error) {
	n := 0
	for chunk := range slices.Chunk(entries, flushChunk) {
		call, cancel := context.WithTimeout(ctx, callLimit)
		added, err := q.index.Schedule(call, kind, q.cfg.Partition, true, chunk)
		cancel()
		n += added
		if err != nil {
			return n, fmt.Errorf("timeout: put entries: %w", err)
		}
	}
	return n, nil
}
