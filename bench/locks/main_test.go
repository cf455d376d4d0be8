package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/platform/testbed"
)

func TestQuickRunHasARowForEverybody(t *testing.T) {
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"-quick"}, func(string) string { return "" }, &out, &progress)
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan(nil) {
		for _, s := range w.Cases {
			name, _, _ := strings.Cut(s.Name, ",")
			if s.Name == bareCommit {
				name = "commits of an UPDATE" // has a column
			}
			if !strings.Contains(out.String(), name) {
				t.Errorf("no row for %s", s.Name)
			}
		}
	}
	for _, row := range []string{"etcd: ours", "etcd: floor", "ZooKeeper: ours", "ZooKeeper: floor", "at the floor of etcd", "MariaDB, one key", "SQLite, a key each for 32", "redlock, one of five frozen"} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("no row %q", row)
		}
	}
}

// A lock that excludes nobody must not get into any table.
func TestRunsFindALockThatGrantsAlways(t *testing.T) {
	on, err := start(t.Context(), "")
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer on.close()
	broken := subject{name: "broken", open: func(context.Context, *servers) (*client, error) {
		return &client{acquire: func(context.Context, string) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, nil
		}}, nil
	}}
	for name, run := range map[string]func(context.Context, *servers, subject, time.Duration) (sample, error){
		// Holders make room for one another: on one processor they might not overlap otherwise.
		"load":     load{clients: 2, goroutines: 16, shared: true, inside: runtime.Gosched}.run,
		"hand-off": handOff{clients: 2, least: shortHold, more: holdSpan}.run,
	} {
		if _, err := run(t.Context(), on, broken, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "violated") {
			t.Errorf("%s: got %v, want a violation", name, err)
		}
	}
}

// The load repairs its fault after the run, even if a lock fails.
func TestFaultIsRepaired(t *testing.T) {
	on, err := start(t.Context(), "")
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer on.close()
	broken, calls, repaired := errors.New("broken"), 0, 0
	s := subject{open: func(context.Context, *servers) (*client, error) {
		return &client{acquire: func(context.Context, string) (func(context.Context) error, error) {
			if calls++; calls > 3 {
				return nil, broken
			}
			return func(context.Context) error { return nil }, nil
		}}, nil
	}}
	l := load{clients: 1, goroutines: 1, fault: func(*servers) (func() error, error) {
		if calls != 1 {
			t.Errorf("broken after %d acquisitions, want 1", calls)
		}
		return func() error { repaired++; return nil }, nil
	}}
	if _, err := l.run(t.Context(), on, s, time.Minute); !errors.Is(err, broken) || repaired != 1 {
		t.Errorf("got %v and %d repairs", err, repaired)
	}
}

// Twice as fast is 2, whether time or rate is compared.
func TestStoreTargetsCompareThePeerWithOurs(t *testing.T) {
	r := &report{found: measure.Findings[sample]{}}
	for _, s := range stores() {
		for _, w := range []string{waiting8, contended, handover, handoverLong} {
			r.found[s.on(w)] = map[string]cell{oursThere: {{rate: 20, p50: 5}}}
			for _, peer := range s.locks[1:] {
				r.found[s.on(w)][peer.name] = cell{{rate: 10, p50: 10}}
			}
		}
	}
	r.found[fiveWell] = map[string]cell{oursThere: {{p99: 10, gave99: 10}}}
	r.found[fiveFrozen] = map[string]cell{oursThere: {{p99: 10, gave99: 20}}}
	table := r.targets()
	for _, row := range table.Rows {
		want := []string{"2.00", ">= 1.5", "reached"}
		switch {
		case strings.HasPrefix(row[0], "redlock"):
			want = []string{"1.00", "<= 1.5", "reached"}
		case row[0] == "the same of release":
			want = []string{"2.00", "<= 1.5", "missed"}
		}
		if !slices.Equal(row[1:], want) {
			t.Errorf("%s: got %q, want %q", row[0], row[1:], want)
		}
	}
	if len(table.Rows) != 2+4*3 {
		t.Errorf("%d rows: %q", len(table.Rows), table.Rows)
	}
}

func TestBestPeerMustBeFairEnough(t *testing.T) {
	cells := map[string]cell{
		oursQueue: {{rate: 9, spread: 1}},
		"hog":     {{rate: 8, spread: 11}},
		"starves": {{rate: 7, spread: math.Inf(1)}},
		"fair":    {{rate: 5, spread: 10}},
		"slow":    {{rate: 4, spread: 2}},
	}
	if got := best(cells); got != "fair" {
		t.Errorf("got %q, want fair", got)
	}
}
