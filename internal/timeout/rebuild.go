package timeout

import (
	"context"
	"fmt"
)

// page is a part of the open timers, or the error that ended the reading.
type page struct {
	rows []Row
	err  error
}

// pages reads the open timers of a kind, the soonest first, one page ahead of the
// receiver. It closes the channel after the last page, or when ctx ends.
func (q *Queue) pages(ctx context.Context, kind string) <-chan page {
	pages := make(chan page)
	go func() {
		defer close(pages)
		for f := (Filter{Kind: kind, State: Open, Limit: pageMax, Brief: true}); ; {
			rows, err := q.store.List(ctx, f)
			select {
			case pages <- page{rows, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || len(rows) < pageMax {
				return
			}
			f.After = rows[len(rows)-1]
		}
	}()
	return pages
}

// rebuild adds the entries of all open timers of a kind in this partition, by page and soonest first, and marks the
// index as complete.
func (q *Queue) rebuild(ctx context.Context, kind string) (int, error) {
	reading, cancel := context.WithCancel(ctx)
	pages := q.pages(reading, kind)
	defer func() {
		cancel()
		for range pages { // until the reader has returned
		}
	}()
	n := 0
	for p := range pages {
		if p.err != nil {
			return n, p.err
		}
		entries := make([]Entry, 0, len(p.rows))
		for _, r := range p.rows {
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
	if ctx.Err() != nil { // the pages may have ended before the last one
		return n, context.Cause(ctx)
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
	for len(entries) > 0 {
		chunk := entries[:min(len(entries), flushChunk)]
		call, cancel := context.WithTimeout(ctx, callLimit)
		added, err := q.index.Schedule(call, kind, q.cfg.Partition, true, chunk)
		cancel()
		n += added
		if err != nil {
			return n, fmt.Errorf("timeout: put entries: %w", err)
		}
		entries = entries[len(chunk):]
	}
	return n, nil
}
