package timeout

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Get returns a stored timer, or [ErrNotFound]. It blocks for the database.
func (q *Queue) Get(ctx context.Context, kind, id string) (Row, error) {
	if err := checkID(kind, id); err != nil {
		return Row{}, fmt.Errorf("timeout: get: %w", err)
	}
	rows, _, err := q.store.Load(ctx, kind, []string{id})
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Row{}, fmt.Errorf("timeout: get %s timer %q: %w", kind, id, err)
	}
	return rows[0], nil
}

// List returns stored timers, the earliest first, a page at a time. It blocks for
// the database.
func (q *Queue) List(ctx context.Context, f Filter) ([]Row, error) {
	if f.Limit < 0 || f.Limit > pageMax {
		return nil, fmt.Errorf("timeout: list: %w: give a limit of at most %d", ErrInvalid, pageMax)
	}
	rows, err := q.store.List(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("timeout: list: %w", err)
	}
	return rows, nil
}

// FireNow makes a timer due at once, also a dead one, or fails with [ErrNotFound].
// Whether there is anything to do yet remains the handler's decision.
func (q *Queue) FireNow(ctx context.Context, kind, id string) error {
	now, err := q.store.Now(ctx)
	if err != nil {
		return fmt.Errorf("timeout: fire %s timer %q: %w", kind, id, err)
	}
	push, err := q.Reschedule(ctx, nil, kind, id, now.Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	push()
	return nil
}

// Pause stops the handling of a kind at all instances, within about a second. Timers in
// progress finish, and timers that become due wait. Resume ends the pause.
func (q *Queue) Pause(ctx context.Context, kind string) error { return q.setPaused(ctx, kind, true) }

// Resume ends a pause.
func (q *Queue) Resume(ctx context.Context, kind string) error { return q.setPaused(ctx, kind, false) }

func (q *Queue) setPaused(ctx context.Context, kind string, paused bool) error {
	if err := checkKind(kind); err != nil {
		return fmt.Errorf("timeout: pause: %w", err)
	}
	if err := q.store.SetPaused(ctx, kind, paused); err != nil {
		return fmt.Errorf("timeout: pause %q (%t): %w", kind, paused, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.kinds[kind]; ok {
		w.paused.Store(paused)
	}
	return nil
}

// Redrive makes dead timers of a kind open again, due now and with no attempts. Without ids it redrives all that are
// dead when it is called. A timer that dies again meanwhile is redriven once. It returns how many there were.
func (q *Queue) Redrive(ctx context.Context, kind string, ids ...string) (int, error) {
	if err := checkKind(kind); err != nil {
		return 0, fmt.Errorf("timeout: redrive: %w", err)
	}
	if len(ids) == 0 {
		var err error
		if ids, err = q.dead(ctx, kind); err != nil {
			return 0, fmt.Errorf("timeout: redrive %q: %w", kind, err)
		}
	}
	n := 0
	for chunk := range slices.Chunk(ids, redriveMax) {
		rows, err := q.store.Redrive(ctx, kind, chunk)
		if err != nil {
			return n, fmt.Errorf("timeout: redrive %q after %d timers: %w", kind, n, err)
		}
		entries := make([]pushed, len(rows))
		for i, r := range rows {
			entries[i] = pushed{shardKey{kind, r.Partition}, Entry{ID: r.ID, At: r.Next}}
		}
		q.push(entries)
		n += len(rows)
	}
	return n, nil
}

// dead returns the ids of all dead timers of a kind. No row has the moment of death, so Redrive lists
// the timers before it changes any.
func (q *Queue) dead(ctx context.Context, kind string) (ids []string, err error) {
	for rows, err := range q.pages(ctx, Filter{Kind: kind, State: Dead, Limit: redriveMax}) {
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// pages reads the timers that f chooses. An error ends it.
func (q *Queue) pages(ctx context.Context, f Filter) iter.Seq2[[]Row, error] {
	return func(yield func([]Row, error) bool) {
		for {
			rows, err := q.store.List(ctx, f)
			if !yield(rows, err) || err != nil || len(rows) < f.Limit {
				return
			}
			f.After = rows[len(rows)-1]
		}
	}
}

const (
	pageMax    = 5000
	redriveMax = 1000
)
