package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/timeout"
)

// memory is a [timeout.Store] without a database: rows in maps, nothing on disk, no transactions.
type memory struct {
	timeout.Store // nil: it has the methods that no run calls

	mu   sync.Mutex
	rows map[string]timeout.Row        // by id: there is one kind
	next map[int64]map[string]struct{} // their ids by the second of Next, so that nobody has to read all rows
}

var _ timeout.Store = (*memory)(nil)

func newMemory() *memory {
	return &memory{rows: map[string]timeout.Row{}, next: map[int64]map[string]struct{}{}}
}

// set stores a row.
func (m *memory) set(row timeout.Row) {
	if old, ok := m.rows[row.ID]; ok {
		m.drop(old)
	}
	m.rows[row.ID] = row
	second := row.Next.Unix()
	if m.next[second] == nil {
		m.next[second] = map[string]struct{}{}
	}
	m.next[second][row.ID] = struct{}{}
}

// drop deletes a row.
func (m *memory) drop(row timeout.Row) {
	delete(m.rows, row.ID)
	second := row.Next.Unix()
	if delete(m.next[second], row.ID); len(m.next[second]) == 0 {
		delete(m.next, second)
	}
}

// until returns the rows of the seconds up to that of a moment; all of them if it is zero.
func (m *memory) until(moment time.Time) (rows []timeout.Row) {
	for second, ids := range m.next {
		if !moment.IsZero() && second > moment.Unix() {
			continue
		}
		for id := range ids {
			rows = append(rows, m.rows[id])
		}
	}
	return rows
}

// Now implements [timeout.Store].
func (m *memory) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// Insert implements [timeout.Store].
func (m *memory) Insert(_ context.Context, _ timeout.Tx, lane, trace string, timers []timeout.Timer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range timers {
		m.set(timeout.Row{Timer: t, Partition: lane, State: timeout.Open, Next: t.Due, Trace: trace, CreatedAt: time.Now()})
	}
	return nil
}

// Delete implements [timeout.Store].
func (m *memory) Delete(_ context.Context, _ timeout.Tx, _ string, ids []string, due []time.Time) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range ids {
		if row, ok := m.rows[id]; ok && (due == nil || !row.Due.After(due[i])) {
			m.drop(row)
			n++
		}
	}
	return n, nil
}

// Load implements [timeout.Store].
func (m *memory) Load(_ context.Context, _ string, ids []string) ([]timeout.Row, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := make([]timeout.Row, 0, len(ids))
	for _, id := range ids {
		if row, ok := m.rows[id]; ok {
			rows = append(rows, row)
		}
	}
	return rows, time.Now(), nil
}

// ClaimOverdue implements [timeout.Store].
func (m *memory) ClaimOverdue(
	_ context.Context, _, _ string, before, until time.Time, limit int,
) ([]timeout.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []timeout.Row
	for _, row := range m.until(before) {
		if len(rows) == limit {
			break
		}
		if row.Next.Before(before) {
			row.Attempt++
			rows = append(rows, row)
			row.Next = until
			m.set(row)
		}
	}
	return rows, nil
}

// List implements [timeout.Store].
func (m *memory) List(_ context.Context, f timeout.Filter) ([]timeout.Row, error) {
	order := func(a, b timeout.Row) int { return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID)) }
	m.mu.Lock()
	var rows []timeout.Row
	for _, row := range m.until(f.Until) {
		if order(row, f.After) > 0 && (f.Until.IsZero() || row.Next.Before(f.Until)) {
			rows = append(rows, row)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(rows, order)
	return rows[:min(len(rows), f.Limit)], nil
}

// Delay implements [timeout.Store].
func (m *memory) Delay(_ context.Context, _ string, later []timeout.Later) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range later {
		if row, ok := m.rows[l.ID]; ok {
			row.Next, row.Attempt, row.LastError = l.At, l.Attempt, l.Error
			m.set(row)
		}
	}
	return nil
}

// Count implements [timeout.Store].
func (m *memory) Count(context.Context) (map[timeout.Shard]map[timeout.State]int, error) {
	return nil, nil //nolint:nilnil // Nothing is counted.
}

// MarkDead implements [timeout.Store].
func (m *memory) MarkDead(context.Context, string, []timeout.Later) error { return nil }

// Paused implements [timeout.Store].
func (m *memory) Paused(context.Context) ([]string, error) { return nil, nil }

// Heartbeat implements [timeout.Store].
func (m *memory) Heartbeat(context.Context, string, string) error { return nil }

// Reassign implements [timeout.Store].
func (m *memory) Reassign(context.Context, time.Duration, int) (int, error) {
	return 0, nil
}
