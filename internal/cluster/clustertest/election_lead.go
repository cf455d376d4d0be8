package clustertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// leads runs work whenever e leads, until ctx ends.
func leads(ctx context.Context, t testing.TB, e cluster.Election, name string, work func(ctx context.Context, term *cluster.Term) error) {
	t.Helper()
	cluster.Lead{
		Election: e, Pause: 10 * time.Millisecond, OnError: func(err error) { t.Log(name, "reports:", err) },
	}.Run(ctx, work)
}

// leadTakesTurns has work that ends by itself: others get their turn.
func leadTakesTurns(t testing.TB, h Harness, group string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		turns = map[string]int{}
	)
	for _, name := range []string{"a", "b", "c"} {
		e := Elect(t, h.open(t, group), group, name)
		wg.Go(func() {
			leads(ctx, t, e, name, func(context.Context, *cluster.Term) error {
				mu.Lock()
				defer mu.Unlock()
				if turns[name]++; len(turns) == 3 && turns["a"]+turns["b"]+turns["c"] >= 9 {
					cancel()
				}
				return errors.New("done")
			})
		})
	}
	wg.Wait()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("turns %v", turns)
	}
}

func leadEndsWithItsContext(t testing.TB, h Harness, group string) {
	ctx, cancel := context.WithCancel(t.Context())
	a, b := Elect(t, h.open(t, group), group, "a"), Elect(t, h.open(t, group), group, "b")
	over := false
	leads(ctx, t, a, "a", func(ctx context.Context, term *cluster.Term) error {
		cancel()
		<-ctx.Done()
		if term.Err() != nil {
			t.Error("resigned before the work was over")
		}
		over = true
		return ctx.Err()
	})
	if !over {
		t.Error("Run returns before the work is over")
	}
	start := time.Now()
	Campaign(t, b)
	t.Logf("the next one is elected after %v", time.Since(start))
}

// lossEndsTheWork takes the leadership from a leader that is healthy.
func lossEndsTheWork(t testing.TB, h Harness, group string) {
	a := Elect(t, h.open(t, group), group, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	terms := 0
	leads(ctx, t, a, "a", func(work context.Context, term *cluster.Term) error {
		if terms++; terms == 2 {
			cancel()
			return nil
		}
		h.Depose(t, group)
		<-work.Done()
		if !errors.Is(context.Cause(work), dlock.ErrLost) || !errors.Is(term.Err(), dlock.ErrLost) {
			t.Errorf("the work ends by %v, the term by %v", context.Cause(work), term.Err())
		}
		return nil
	})
	if terms != 2 {
		t.Errorf("%d terms", terms)
	}
}

// cutOffLeaderStopsFirst cuts leaders off, one after the other, while all of them
// write to a register that checks their fences.
func cutOffLeaderStopsFirst(t testing.TB, h Harness, group string) {
	n := testbedtest.Size(3, 20)
	names := []string{"a", "b", "c"}
	links := map[string]Link{}
	record := NewRecord()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leading sync.WaitGroup
	for _, name := range names {
		i, link := h.behind(t, group)
		links[name] = link
		e := Elect(t, i, group, name)
		leading.Go(func() { record.Lead(ctx, t, e, name) })
	}
	for range n {
		leader := record.Await(t, cluster.Leader{})
		start := time.Now()
		links[leader.Name].Cut()
		next := record.Await(t, leader)
		elected := time.Since(start)
		if ended := record.Ended(leader); !ended.IsZero() { // otherwise Check says so
			t.Logf("cut off, it ends after %v; the next one is elected after %v, the TTL being %v", ended.Sub(start), elected, h.TTL)
		}
		links[leader.Name].Heal()
		record.AwaitWrites(t, next, 20)
	}
	cancel()
	leading.Wait()
	record.Check(t, n+1)
}
