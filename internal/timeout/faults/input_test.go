package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// poisoned is expire, for a world in which some timers cannot be handled.
func poisoned(n *node) timeout.Handler {
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		for _, f := range batch {
			switch {
			case strings.HasPrefix(f.ID, "panics"):
				panic("a bad row")
			case strings.HasPrefix(f.ID, "fails"):
				return nil, errors.New("a bad row")
			case strings.HasPrefix(f.ID, "counts"):
				return nil, nil // no outcome for anybody
			}
		}
		return n.expire(ctx, batch)
	}
}

// Timers that no attempt can handle are among orders that expire. They are found, tried a
// bounded number of times, and kept as dead; the orders expire as if they were not there.
func TestPoisonAmongOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := timeout.Options{Attempts: 3, Backoff: 50 * time.Millisecond}
	a, _ := w.start(nodeConfig{Name: "a", Options: options, handler: poisoned})
	w.start(nodeConfig{Name: "b", Options: options, handler: poisoned})
	var poison []timeout.Timer
	for i := range testbedtest.Size(10, 100) {
		for _, what := range []string{"panics", "fails", "counts"} {
			poison = append(poison, timeout.Timer{Kind: kind, ID: fmt.Sprint(what, "-", i), Due: time.Now().Add(least + rand.N(spread))})
		}
	}
	push, err := a.Schedule(t.Context(), nil, poison...)
	if err != nil {
		t.Fatal(err)
	}
	push()
	placed := w.load(a, testbedtest.Size(300, 10_000))
	w.settled(placed, 0)
	dead, err := a.List(t.Context(), timeout.Filter{Kind: kind, State: timeout.Dead, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range dead {
		if row.Attempt < options.Attempts || row.LastError == "" {
			t.Errorf("%s is dead after %d attempts, %q", row.ID, row.Attempt, row.LastError)
		}
	}
	t.Logf("%d of %d poison timers are dead: %v", len(dead), len(poison), a.seen.all())
	if len(dead) != len(poison) {
		t.Errorf("%d timers are dead, want %d", len(dead), len(poison))
	}
}

// A timer that was long due fires at once. An absurd moment is refused, with the transaction that asked for it.
func TestPastAndAbsurdMoments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.start(nodeConfig{Name: "a"})
	absurd := []time.Time{time.Unix(0, -1), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), {}}
	for i, due := range absurd {
		if err := a.place(t.Context(), 0, due, fmt.Sprint("absurd-", i)); !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("due %v: %v, want ErrInvalid", due, err)
		}
	}
	began := time.Now()
	for i := range 10 {
		if err := a.place(t.Context(), 0, began.Add(-time.Duration(i)*1000*time.Hour), fmt.Sprint("past-", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.settled(10, 0)
	t.Logf("10 orders of the past are gone after %v: %v", time.Since(began).Round(time.Millisecond), a.seen.all())
}
