package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/platform/testbed"
)

// The cells that wait seconds for asynq are left out.
func TestQuickRunHasARowForEverybody(t *testing.T) {
	var out, progress bytes.Buffer
	only := "^late/ours|^(acked|drain|pending|lost|rowed|expiry)/"
	err := run(t.Context(), []string{"-quick", "-only", only}, func(string) string { return "" }, &out, &progress)
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan(nil, true) {
		for _, c := range w.Cases {
			if w.Name != slow && !strings.HasPrefix(w.Name+c.Name, late+"asynq") && !strings.Contains(out.String(), c.Name) {
				t.Errorf("no row for %s", c.Name)
			}
		}
	}
}

// stub is a queue of ours that fires each timer at once, with a due time of its own.
func stub(due func(alarm) (alarm, bool)) subject {
	return subject{name: "stub", ours: true, writers: 1, chunk: 10, open: func(_ context.Context, _ *servers, fired func(alarm, time.Time)) (*queue, error) {
		return &queue{
			schedule: func(_ context.Context, alarms []alarm) error {
				for _, a := range alarms {
					if a, ok := due(a); ok {
						fired(a, time.Now())
					}
				}
				return nil
			},
			close: func(context.Context) error { return nil },
		}, nil
	}}
}

// A queue that fires early must not get into any table.
func TestLatenessFindsWhatIsEarly(t *testing.T) {
	server, err := measure.OpenServer(t.Context(), "")
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	on := &servers{redis: server}
	_, err = firingDelays(t.Context(), on, stub(func(a alarm) (alarm, bool) { return a, true }), 100, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "10 timers of 10 were early") {
		t.Errorf("got %v, want ten that are early", err)
	}
	s, err := firingDelays(t.Context(), on, stub(func(a alarm) (alarm, bool) {
		return alarm{a.n, time.Now().Add(-time.Millisecond)}, true
	}), 100, 100*time.Millisecond)
	if err != nil || s.min < 1000 || s.n != 10 || s.fired != 10 {
		t.Errorf("got %+v, %v, want ten that are a millisecond late", s, err)
	}
}

func TestRecordCounts(t *testing.T) {
	r, start := newRecord(4), time.Now()
	for _, n := range []int{0, 1, 1, 2} {
		r.fire(alarm{n, start}, start.Add(time.Duration(n-1)*time.Second))
	}
	s := r.summary(0)
	r.fire(alarm{3, start}, start)
	if s.early != 1 || s.twice != 1 || s.lost != 1 || s.fired != 1 || s.min != -1e6 || s.max != 1e6 {
		t.Errorf("got %+v", s)
	}
}

func TestPrecisionIsJudgedOnAQuietMachine(t *testing.T) {
	for _, tt := range []struct {
		c    cell
		want string
	}{
		{cell{{over: 1, floor: 1}, {over: 9000, floor: 9000}, {over: 9000, floor: 9000}}, "reached"},
		{cell{{over: 4000, floor: 1}, {over: 1, floor: 9000}}, "missed"},
		{cell{{over: 1, floor: 9000}}, "not judged"},
	} {
		if row := precision(tt.c); !strings.HasPrefix(row[3], tt.want) {
			t.Errorf("%+v: %q, want %s", tt.c, row, tt.want)
		}
	}
}
