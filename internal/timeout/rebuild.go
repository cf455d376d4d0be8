package timeout

import (
	"context"
	"fmt"
)

// page is a part of the open timers, or why there are no more.
type page struct {
	rows []Row
	err  error
}

// pages reads the open timers of a kind, the soonest first, a page ahead of whoever
// takes them. The channel is closed after the last one, or when ctx ends.
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

// rebuild tells the index of all open timers of a kind in this lane, page by page,
// the soonest first, and that it has been told everything.
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
		hints := make([]Hint, 0, len(p.rows))
		for _, r := range p.rows {
			if r.Lane == q.cfg.Lane {
				hints = append(hints, Hint{ID: r.ID, At: r.Next})
			}
		}
		added, err := q.putMissing(ctx, kind, hints)
		n += added
		if err != nil {
			return n, err
		}
	}
	if ctx.Err() != nil { // the pages may have ended before the last one
		return n, context.Cause(ctx)
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

// putMissing puts hints that the index does not have.
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
		hints = hints[len(chunk):]
	}
	return n, nil
}
