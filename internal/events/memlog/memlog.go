// Package memlog implements the log of package events in the memory of one process, for an instance without Redis and
// for tests.
package memlog

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/events"
)

// Size is how many entries a log keeps.
const Size = 1024

// Log is an [events.Log]. Use [New].
type Log struct {
	mu      sync.Mutex
	entries []events.Entry
	last    events.ID
	numbers map[string]uint64 // of the latest batch, by writer
	changed chan struct{}     // closed by the next Append
}

var _ events.Log = (*Log)(nil)

// New returns a log with its first entry. IDs begin at the present time, so no reader of an earlier log finds its position.
func New() *Log {
	l := &Log{numbers: make(map[string]uint64), changed: make(chan struct{}), last: events.ID{Ms: uint64(time.Now().UnixMilli())}}
	l.entries = []events.Entry{{ID: l.last}}
	return l
}

// Append implements [events.Log].
func (l *Log) Append(_ context.Context, b events.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.Number <= l.numbers[b.Writer] {
		return nil
	}
	l.numbers[b.Writer] = b.Number
	e := events.Entry{ID: events.ID{Ms: l.last.Ms, Seq: l.last.Seq + 1}, Previous: l.last, Lost: b.Lost, Texts: b.Texts}
	l.entries, l.last = append(l.entries, e), e.ID
	if len(l.entries) > 2*Size {
		l.entries = slices.Clone(l.entries[len(l.entries)-Size:])
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// Latest implements [events.Log].
func (l *Log) Latest(_ context.Context, n int) ([]events.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := len(l.entries) - 1
	for have := len(l.entries[from].Texts); from > 0 && have < n; have += len(l.entries[from].Texts) {
		from--
	}
	return slices.Clone(l.entries[from:]), nil
}

// Next implements [events.Log].
func (l *Log) Next(ctx context.Context, id events.ID, n int) ([]events.Entry, error) {
	for {
		l.mu.Lock()
		entries, last, changed := l.entries, l.last, l.changed
		l.mu.Unlock()
		if last.Compare(id) < 0 {
			return nil, events.ErrGap
		}
		i, found := slices.BinarySearchFunc(entries, id, func(e events.Entry, id events.ID) int { return e.ID.Compare(id) })
		if found {
			i++
		}
		if i < len(entries) {
			return entries[i:min(i+n, len(entries))], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}
