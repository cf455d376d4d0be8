package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrGap means that entries after the given ID have been removed from the log, or that the log has lost its data.
var ErrGap = errors.New("events: the log does not continue from there")

// ID is the ID of an entry of a [Log], as Redis Streams number entries: a time in milliseconds, and a counter. The IDs of
// a log ascend. The zero ID is none.
type ID struct{ Ms, Seq uint64 }

// String returns what ParseID reads.
func (id ID) String() string { return fmt.Sprintf("%d-%d", id.Ms, id.Seq) }

// Compare returns -1, 0 or 1: whether id is before, at or after other.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Ms, other.Ms), cmp.Compare(id.Seq, other.Seq))
}

// ParseID reads an ID. It reports false for any text that String does not return.
func ParseID(text string) (id ID, ok bool) {
	ms, seq, _ := strings.Cut(text, "-")
	var errs [2]error
	id.Ms, errs[0] = strconv.ParseUint(ms, 10, 64)
	id.Seq, errs[1] = strconv.ParseUint(seq, 10, 64)
	return id, errors.Join(errs[:]...) == nil && id.String() == text
}

// position is the position of a reader after event n of an entry, from 1; after an entry without events, n is 0.
type position struct {
	ID
	n uint64
}

// String returns the ID of an event for clients.
func (p position) String() string { return fmt.Sprintf("%s-%d", p.ID, p.n) }

func (p position) compare(other position) int {
	return cmp.Or(p.Compare(other.ID), cmp.Compare(p.n, other.n))
}

// parsePosition reads a position. It reports false for any text that String does not return.
func parsePosition(text string) (p position, ok bool) {
	i := max(0, strings.LastIndexByte(text, '-'))
	p.ID, _ = ParseID(text[:i])
	p.n, _ = strconv.ParseUint(text[min(i+1, len(text)):], 10, 64)
	return p, p.String() == text
}

// Entry is one entry of a [Log]: the events that one instance appended in one step.
type Entry struct {
	ID       ID
	Previous ID       // of the entry before it when it was appended; the zero ID if there was none
	Lost     bool     // its writer dropped something that was to precede it
	Texts    []string // events in JSON; the first entry of a log has none
}

// Batch is the events that one call of [Log.Append] appends as an entry.
type Batch struct {
	Writer string   // a random name of the writer
	Number uint64   // of the batch: 1, and then one more each time
	Lost   bool     // the writer dropped something that was to precede the batch
	Texts  []string // may be empty if Lost is set
}

// Log keeps the latest events of all instances in one order. A log that is empty gets a first entry without events when it is
// read, so every reader has a position. It is safe for concurrent use.
type Log interface {
	// Append appends a batch in one step. A batch with a number that its writer has used already changes nothing. So a
	// writer that has no answer calls it again. It blocks until the log has answered or ctx ends.
	Append(ctx context.Context, b Batch) error

	// Latest returns the latest entries in their order: one at least, and no more than needed to have n events.
	Latest(ctx context.Context, n int) ([]Entry, error)

	// Next returns the entries that follow id in their order, n at most. It blocks until there is one, some
	// seconds have passed, or ctx ends; in the last two cases it may return none. It fails with [ErrGap] if the log
	// ends before id. A reader compares Entry.Previous with what it has read, and so notices every other gap.
	Next(ctx context.Context, id ID, n int) ([]Entry, error)
}
