package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/timeout"
)

// memory is a [timeout.Store] without a database: rows in maps, nothing on disk, no
// transactions. What it does not need, nobody calls in a run, and does nothing.
type memory struct {
	mu   sync.Mutex
	rows map[string]timeout.Row // by id: there is one kind
	news []timeout.Row          // in the order of their creation, which no two share
	last time.Time
}

var _ timeout.Store = (*memory)(nil)

func newMemory() *memory { return &memory{rows: map[string]timeout.Row{}} }

// Now implements [timeout.Store].
func (m *memory) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// Insert implements [timeout.Store].
func (m *memory) Insert(_ context.Context, _ timeout.Tx, lane, trace string, timers []timeout.Timer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range timers {
		now := time.Now()
		if !now.After(m.last) {
			now = m.last.Add(1)
		}
		m.last = now
		row := timeout.Row{Timer: t, Lane: lane, State: timeout.Open, Next: t.Due, Trace: trace, CreatedAt: now}
		m.rows[t.ID] = row
		m.news = append(m.news, row)
	}
	return nil
}

// Delete implements [timeout.Store].
func (m *memory) Delete(_ context.Context, _ timeout.Tx, _ string, ids []string, due []time.Time) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range ids {
		if row, ok := m.rows[id]; ok && (due == nil || !row.Due.After(due[i])) {
			delete(m.rows, id)
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

// Sweep implements [timeout.Store].
func (m *memory) Sweep(
	_ context.Context, _ timeout.Office, _ []string, _ string, _ int, before, until time.Time, limit int,
) ([]timeout.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []timeout.Row
	for id, row := range m.rows {
		if len(rows) == limit {
			break
		}
		if row.Next.Before(before) {
			claimed := row
			row.Attempt++
			rows = append(rows, row)
			claimed.Next, claimed.Attempt = until, row.Attempt
			m.rows[id] = claimed
		}
	}
	return rows, nil
}

// Tail implements [timeout.Store].
func (m *memory) Tail(_ context.Context, n timeout.Newcomers) ([]timeout.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := n.From
	if n.After.CreatedAt.After(from) {
		from = n.After.CreatedAt.Add(1) // no two have one moment
	}
	var rows []timeout.Row
	at, _ := slices.BinarySearchFunc(m.news, from, func(r timeout.Row, t time.Time) int { return r.CreatedAt.Compare(t) })
	for ; at < len(m.news) && m.news[at].CreatedAt.Before(n.To) && len(rows) < n.Limit; at++ {
		row, open := m.rows[m.news[at].ID]
		if open && row.Kind == n.Kind && row.Lane == n.Lane && row.Next.After(n.Later) && row.Next.Before(n.Before) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// List implements [timeout.Store].
func (m *memory) List(_ context.Context, f timeout.Filter) ([]timeout.Row, error) {
	order := func(a, b timeout.Row) int { return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID)) }
	m.mu.Lock()
	var rows []timeout.Row
	for _, row := range m.rows {
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
			m.rows[l.ID] = row
		}
	}
	return nil
}

// Move implements [timeout.Store].
func (m *memory) Move(context.Context, timeout.Tx, string, string, time.Time) (timeout.Row, error) {
	return timeout.Row{}, timeout.ErrNotFound
}

// Count implements [timeout.Store].
func (m *memory) Count(context.Context) (map[timeout.Shard]map[timeout.State]int, error) {
	return nil, nil //nolint:nilnil // Nothing is counted.
}

// Bury implements [timeout.Store].
func (m *memory) Bury(context.Context, string, []timeout.Later) error { return nil }

// Redrive implements [timeout.Store].
func (m *memory) Redrive(context.Context, string, []string) ([]timeout.Row, error) {
	return nil, nil
}

// SetPaused implements [timeout.Store].
func (m *memory) SetPaused(context.Context, string, bool) error { return nil }

// Paused implements [timeout.Store].
func (m *memory) Paused(context.Context) ([]string, error) { return nil, nil }

// Beat implements [timeout.Store].
func (m *memory) Beat(context.Context, string, string) error { return nil }

// SilentLanes implements [timeout.Store].
func (m *memory) SilentLanes(context.Context, time.Duration) ([]string, error) { return nil, nil }

// Adopt implements [timeout.Store].
func (m *memory) Adopt(context.Context, timeout.Office, time.Duration, int) (int, error) {
	return 0, nil
}
