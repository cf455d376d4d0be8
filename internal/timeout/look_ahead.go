package timeout

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	passEvery  = 20 * time.Second // between two look-ahead passes; see SetPace
	passChecks = time.Second      // how often an instance asks whether a pass is due
	windowSize = 3                // intervals between passes that the window has
)

// window is how far passes look ahead: one that fails, and the death of the instance that makes the next one, delay no timer.
func (q *Queue) window() time.Duration { return windowSize * time.Duration(q.every.Load()) }

// soon reports whether a moment is in the window. Later timers get their entries from a pass.
func (q *Queue) soon(at, now time.Time) bool { return !at.After(now.Add(q.window())) }

// lookAhead makes passes until ctx ends. The index grants each pass to one of the instances. An index that is empty
// grants one at once, so that it has its entries again about a second after their loss.
func (w *worker) lookAhead(ctx context.Context) {
	every := time.NewTicker(passChecks)
	defer every.Stop()
	for again := false; ; {
		granted, err := again, error(nil)
		if !again {
			granted, err = w.granted(ctx)
		}
		if err == nil && granted {
			err = w.pass(ctx)
		}
		if again = granted && err != nil; err != nil {
			w.q.failed(ctx, w.kind, "look ahead", err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *worker) granted(ctx context.Context) (bool, error) {
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	granted, err := w.q.index.GrantPass(call, w.kind, w.q.cfg.Partition, time.Duration(w.q.every.Load()))
	if err != nil {
		return false, fmt.Errorf("timeout: ask for a pass: %w", err)
	}
	return granted, nil
}

// pass puts the entries of all timers in the window, the soonest first. Overdue timers are left to the claims that they
// may be in, and to the overdue scan.
func (w *worker) pass(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	now, err := w.q.store.Now(call)
	cancel()
	if err != nil {
		return err
	}
	f := Filter{Kind: w.kind, State: Open, Until: now.Add(w.q.window()), Limit: pageMax, Brief: true}
	f.After = Row{Timer: Timer{Kind: w.kind, ID: " "}, Next: now} // before all of that moment
	for rows, err := range w.q.pages(ctx, f) {
		if err != nil {
			return err
		}
		entries := make([]Entry, 0, len(rows))
		for _, r := range rows {
			if r.Partition == w.q.cfg.Partition {
				entries = append(entries, Entry{ID: r.ID, At: r.Next})
			}
		}
		if err := w.q.put(ctx, w.kind, w.q.cfg.Partition, entries); err != nil {
			return err
		}
	}
	return nil
}

// put puts entries into the index, a bounded batch after the other.
func (q *Queue) put(ctx context.Context, kind, partition string, entries []Entry) error {
	for chunk := range slices.Chunk(entries, putChunk) {
		call, cancel := context.WithTimeout(ctx, callLimit)
		err := q.index.Schedule(call, kind, partition, chunk)
		cancel()
		if err != nil {
			return fmt.Errorf("timeout: put entries: %w", err)
		}
	}
	return nil
}
