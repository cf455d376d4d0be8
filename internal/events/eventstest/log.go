// Package eventstest has the conformance tests of [events.Log].
package eventstest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/events"
)

// RunLog runs the conformance tests. open returns a log that is empty and that no other test uses.
func RunLog(t *testing.T, open func(t *testing.T) events.Log) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, log events.Log){
		"EmptyLogHasAPosition":  emptyLogHasAPosition,
		"EntriesAreChained":     entriesAreChained,
		"LatestAreTheLast":      latestAreTheLast,
		"BatchIsAppendedOnce":   batchIsAppendedOnce,
		"LossIsMarked":          lossIsMarked,
		"NextWaits":             nextWaits,
		"NextEndsWithItsCaller": nextEndsWithItsCaller,
		"EndBeforeIsAGap":       endBeforeIsAGap,
		"OldEntriesGo":          oldEntriesGo,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// write appends texts as a new writer.
func write(t *testing.T, log events.Log, texts ...string) {
	t.Helper()
	appendTo(t, log, events.Batch{Writer: rand.Text(), Number: 1, Texts: texts})
}

// appendTo appends a batch, again if a busy machine has given no answer in time.
func appendTo(t *testing.T, log events.Log, b events.Batch) {
	t.Helper()
	_, err := insist(func() (struct{}, error) { return struct{}{}, log.Append(t.Context(), b) })
	if err != nil {
		t.Fatal(err)
	}
}

// insist repeats a call whose time is over, for a minute at most.
func insist[T any](call func() (T, error)) (result T, err error) {
	for end := time.Now().Add(time.Minute); ; {
		if result, err = call(); !errors.Is(err, context.DeadlineExceeded) || time.Now().After(end) {
			return result, err
		}
	}
}

func latest(t *testing.T, log events.Log, n int) []events.Entry {
	t.Helper()
	entries, err := insist(func() ([]events.Entry, error) { return log.Latest(t.Context(), n) })
	if err != nil || len(entries) == 0 || len(entries) > n {
		t.Fatalf("%d of the latest %d entries, %v", len(entries), n, err)
	}
	return entries
}

// next reads n entries that follow id.
func next(t *testing.T, log events.Log, id events.ID, n int) (all []events.Entry) {
	t.Helper()
	for len(all) < n && t.Context().Err() == nil {
		some, err := insist(func() ([]events.Entry, error) { return log.Next(t.Context(), id, n-len(all)) })
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, some...); len(all) > 0 {
			id = all[len(all)-1].ID
		}
	}
	return all
}

func texts(entries []events.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, strings.Join(e.Texts, " "))
	}
	return all
}

func want(t *testing.T, entries []events.Entry, all ...string) {
	t.Helper()
	if got := texts(entries); !slices.Equal(got, all) {
		t.Errorf("entries %q, want %q", got, all)
	}
}

// A log that is empty gets a first entry, so that a reader has a position.
func emptyLogHasAPosition(t *testing.T, log events.Log) {
	first := latest(t, log, 10)
	want(t, first, "")
	again := latest(t, log, 10)
	if first[0].ID == (events.ID{}) || again[0].ID != first[0].ID {
		t.Errorf("%+v, and then %+v", first, again)
	}
}

// Each entry names the previous one, whoever has written it.
func entriesAreChained(t *testing.T, log events.Log) {
	last := latest(t, log, 1)[0].ID
	write(t, log, "a", "b")
	write(t, log, "c")
	entries := next(t, log, last, 2)
	want(t, entries, "a b", "c")
	for _, e := range entries {
		if e.Previous != last || e.ID.Compare(last) <= 0 || e.Lost {
			t.Errorf("%+v follows %v", e, last)
		}
		last = e.ID
	}
}

func latestAreTheLast(t *testing.T, log events.Log) {
	for _, text := range []string{"a", "b", "c"} {
		write(t, log, text)
	}
	want(t, latest(t, log, 2), "b", "c")
	const many = 1000 // more than is read in one call
	for n := range many {
		write(t, log, strconv.Itoa(n), "x")
	}
	all := latest(t, log, 2*many)
	if len(all) != many || all[0].Texts[0] != "0" || all[many-1].Texts[0] != strconv.Itoa(many-1) {
		t.Errorf("%d entries, from %v to %v", len(all), all[0], all[len(all)-1])
	}
}

// A writer that got no answer repeats the call, and a call may arrive after its successor.
func batchIsAppendedOnce(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	for _, n := range []uint64{1, 1, 2, 1, 2, 3} {
		appendTo(t, log, events.Batch{Writer: "w", Number: n, Texts: []string{strconv.FormatUint(n, 10)}})
	}
	write(t, log, "end")
	want(t, next(t, log, at, 4), "1", "2", "3", "end")
}

// A writer can also append a mark alone.
func lossIsMarked(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	for i, b := range []events.Batch{{Lost: true, Texts: []string{"a", "b"}}, {Texts: []string{"c"}}, {Lost: true}} {
		b.Writer, b.Number = "w", uint64(i+1)
		if err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	entries := next(t, log, at, 3)
	want(t, entries, "a b", "c", "")
	if !entries[0].Lost || entries[1].Lost || !entries[2].Lost {
		t.Errorf("%+v", entries)
	}
}

func nextWaits(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	appended := make(chan error, 1)
	time.AfterFunc(50*time.Millisecond, func() {
		appended <- log.Append(t.Context(), events.Batch{Writer: "w", Number: 1, Texts: []string{"a"}})
	})
	want(t, next(t, log, at, 1), "a")
	if err := <-appended; err != nil {
		t.Error(err)
	}
}

func nextEndsWithItsCaller(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	if entries, _ := log.Next(ctx, at, 1); len(entries) > 0 {
		t.Errorf("%+v", entries)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("Next returned %v after its context had ended", took)
	}
}

// A reader that is further than the log has read another one.
func endBeforeIsAGap(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	at.Ms += 1 << 32
	for {
		entries, err := log.Next(t.Context(), at, 1)
		switch {
		case errors.Is(err, events.ErrGap):
			return
		case err != nil || len(entries) > 0:
			t.Fatalf("%+v, %v; want a gap", entries, err)
		}
	}
}

// A reader that is slower than entries are removed sees it by the first one that it gets.
func oldEntriesGo(t *testing.T, log events.Log) {
	at := latest(t, log, 1)[0].ID
	const batches = 20_000
	for n := range uint64(batches) {
		appendTo(t, log, events.Batch{Writer: "w", Number: n + 1, Texts: []string{"x"}})
	}
	if e := next(t, log, at, 1)[0]; e.Previous == at {
		t.Errorf("%d entries are kept", batches)
	}
}
