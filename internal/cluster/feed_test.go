package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

var errAway = errors.New("away")

// source is a store of one number.
type source struct {
	mu      sync.Mutex
	value   int
	err     error
	hang    bool // until the context of the reading ends
	deaf    bool // notifies nobody of changes
	reads   int
	stops   int
	changed func()
}

func (s *source) feed() cluster.Feed[int] {
	return cluster.Feed[int]{
		Read: func(ctx context.Context, changed func()) (int, func(), error) {
			s.mu.Lock()
			s.reads++
			s.changed = changed
			value, err, hang := s.value, s.err, s.hang
			s.mu.Unlock()
			if hang {
				<-ctx.Done()
				return 0, nil, ctx.Err()
			}
			if err != nil {
				return 0, nil, err
			}
			return value, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.stops++
			}, nil
		},
		Equal: func(a, b int) bool { return a == b },
		Gap:   100 * time.Millisecond, FallbackPoll: 10 * time.Second, Timeout: time.Second,
	}
}

func (s *source) set(f func(s *source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	if !s.deaf && s.changed != nil {
		s.changed()
	}
}

// step is one of a sequence.
type step struct {
	value int
	stale bool
	at    time.Duration
}

// follow ranges over the sequence in a bubble, until the end of it.
func follow(ctx context.Context, f cluster.Feed[int]) (steps func() []step) {
	var (
		mu  sync.Mutex
		all []step
	)
	start := time.Now()
	go func() {
		for value, err := range f.Values(ctx) {
			mu.Lock()
			all = append(all, step{value, errors.Is(err, cluster.ErrStale), time.Since(start)})
			mu.Unlock()
		}
	}()
	return func() []step {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func bubble(t *testing.T, f func(t *testing.T, s *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &source{}) })
}

func wait(d time.Duration) {
	time.Sleep(d) // in a bubble
	synctest.Wait()
}

// TestStormCostsOneReadingPerGap and the last value is seen a gap later at most.
func TestStormCostsOneReadingPerGap(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *source) {
		ctx, stop := context.WithCancel(t.Context())
		steps := follow(ctx, s.feed())
		wait(5 * time.Second)
		for k := range 1000 { // for a second
			s.set(func(s *source) { s.value = k + 1 })
			wait(time.Millisecond)
		}
		wait(100 * time.Millisecond)
		s.mu.Lock()
		reads := s.reads
		s.mu.Unlock()
		all := steps()
		if last := all[len(all)-1]; last.value != 1000 || reads > 13 {
			t.Errorf("%d readings, the last value is %d", reads, last.value)
		}
		if first := all[1]; first.at != 5*time.Second {
			t.Errorf("the first change is seen at %v, not at once", first.at)
		}
		stop()
		wait(time.Second)
		if s.reads != s.stops {
			t.Errorf("%d readings, %d of which were stopped", s.reads, s.stops)
		}
	})
}

func TestChangeWithoutANotification(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *source) {
		s.deaf = true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		steps := follow(ctx, s.feed())
		wait(0)
		s.set(func(s *source) { s.value = 1 })
		wait(10 * time.Second)
		if all := steps(); len(all) != 2 || all[1].value != 1 {
			t.Errorf("steps %+v", all)
		}
	})
}

// TestStaleIsSaidOnce with the last value, and ends with the next reading that succeeds.
func TestStaleIsSaidOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *source) {
		s.value = 1
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		steps := follow(ctx, s.feed())
		wait(time.Minute)
		s.mu.Lock()
		before := s.reads
		s.mu.Unlock()
		if before < 6 || len(steps()) != 1 {
			t.Errorf("%d steps after %d readings of one value", len(steps()), before)
		}
		s.set(func(s *source) { s.err = errAway })
		wait(time.Minute)
		s.mu.Lock()
		reads := s.reads - before
		s.mu.Unlock()
		if reads < 8 || reads > 20 {
			t.Errorf("%d readings in a minute without a store", reads)
		}
		s.set(func(s *source) { s.err = nil })
		wait(time.Second)
		all := steps()
		if len(all) != 3 {
			t.Fatalf("steps %+v", all)
		}
		for i, want := range []step{{1, false, 0}, {1, true, time.Minute}, {1, false, 2 * time.Minute}} {
			late := all[i].at - want.at
			all[i].at = want.at
			if all[i] != want || late < 0 || late > 100*time.Millisecond { // the gap after a reading that has just been
				t.Errorf("step %d: %+v, late by %v", i, all[i], late)
			}
		}
	})
}

// TestSilentStore does not answer: that is said when the time of a reading is over.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *source) {
		s.hang = true
		ctx, stop := context.WithCancel(t.Context())
		steps := follow(ctx, s.feed())
		wait(5 * time.Second)
		if all := steps(); len(all) != 1 || all[0] != (step{0, true, time.Second}) {
			t.Errorf("steps %+v", all)
		}
		s.set(func(s *source) { s.hang = false })
		wait(5 * time.Second)
		if all := steps(); len(all) != 2 || all[1].stale {
			t.Errorf("steps %+v", all)
		}
		s.set(func(s *source) { s.hang = true })
		stop() // also during a reading
		wait(time.Second)
		if all := steps(); len(all) != 2 {
			t.Errorf("after the end: %+v", all)
		}
	})
}

// TestListen has a reading made when a connection comes back, long before it is due.
func TestListen(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *source) {
		var listening func()
		f := s.feed()
		f.Listen = func(changed func()) (stop func()) {
			listening = changed
			return func() { listening = nil }
		}
		s.err, s.deaf = errAway, true
		ctx, stop := context.WithCancel(t.Context())
		steps := follow(ctx, f)
		wait(35 * time.Second)
		s.set(func(s *source) { s.err = nil })
		start := len(steps())
		listening()
		wait(100 * time.Millisecond)
		if all := steps(); len(all) != start+1 || all[start].stale {
			t.Errorf("steps %+v", all)
		}
		stop()
		wait(0)
		if listening != nil {
			t.Error("listens after the end")
		}
	})
}
