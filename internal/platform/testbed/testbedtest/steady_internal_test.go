package testbedtest

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// outer is the test around the runs.
type outer struct {
	testing.TB

	failed, skipped bool
	deadline        time.Time
	said            atomic.Int32
}

func (o *outer) FailNow() {
	o.failed = true
	runtime.Goexit()
}

func (o *outer) SkipNow() {
	o.skipped = true
	runtime.Goexit()
}

func (o *outer) Log(...any) { o.said.Add(1) }

func (o *outer) Logf(string, ...any) { o.said.Add(1) }

func (o *outer) Deadline() (time.Time, bool) { return o.deadline, !o.deadline.IsZero() }

// verdict is a judge who knows.
type verdict bool

func (v verdict) end() (string, bool) { return "", bool(v) }

// runs returns how often f was run, if the machine was paused or not.
func runs(o *outer, still bool, f func(t testing.TB, n int)) (n int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		steady(o, func() judge { return verdict(still) }, func(t testing.TB) {
			n++
			f(t, n)
		})
	}()
	<-done
	return n
}

func TestSteady(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Minute)
	for name, c := range map[string]struct {
		still           bool
		f               func(t testing.TB, n int)
		runs            int
		failed, skipped bool
		deadline        time.Time
	}{
		"passes":                       {true, func(testing.TB, int) {}, 1, false, false, soon},
		"fails on a machine that runs": {false, func(t testing.TB, _ int) { t.Error("x") }, 1, true, false, soon},
		"ends on a machine that runs":  {false, func(t testing.TB, _ int) { t.Fatal("x") }, 1, true, false, soon},
		"fails on one that is paused":  {true, func(t testing.TB, _ int) { t.Errorf("x") }, trials, true, false, soon},
		"fails twice": {true, func(t testing.TB, n int) {
			if n < 3 {
				t.Fatalf("x")
			}
		}, 3, false, false, soon},
		"fails at its end": {true, func(t testing.TB, n int) {
			t.Cleanup(func() {
				if n < 2 {
					t.Error("x")
				}
			})
		}, 2, false, false, soon},
		"is final":               {true, func(t testing.TB, _ int) { Final(t, "x") }, 1, true, false, soon},
		"has no time left":       {true, func(t testing.TB, _ int) { t.Error("x") }, 1, true, false, time.Now()},
		"is skipped":             {false, func(t testing.TB, _ int) { t.Skip("x") }, 1, false, true, soon},
		"is skipped when it can": {true, func(t testing.TB, n int) { failOrSkip(t, n) }, 2, false, true, soon},
		"fails before its skip": {false, func(t testing.TB, _ int) {
			t.Error("x")
			t.Skip("x")
		}, 1, true, false, soon},
		"fails, and then skips, for good": {true, func(t testing.TB, _ int) {
			Final(t, "x")
			t.Skip("x")
		}, 1, true, false, soon},
	} {
		o := &outer{TB: t, deadline: c.deadline}
		if n := runs(o, c.still, c.f); n != c.runs || o.failed != c.failed || o.skipped != c.skipped {
			t.Errorf("what %s: %d runs, failed %v, skipped %v", name, n, o.failed, o.skipped)
		}
	}
}

func failOrSkip(t testing.TB, n int) {
	t.Helper()
	if n == 1 {
		t.FailNow()
	}
	t.SkipNow()
}

// A run ends as a test does: first its context, then its cleanups in reverse order, also after a Goexit. It logs
// nothing after that.
func TestSteadyCleansUpAfterEachRun(t *testing.T) {
	t.Parallel()
	var order []int
	var first testing.TB
	o := &outer{TB: t}
	runs(o, true, func(t testing.TB, n int) {
		if n > 1 {
			before := o.said.Load()
			first.Log("too late")
			if o.said.Load() != before {
				t.Error("a run that is over speaks")
			}
			return
		}
		first = t
		for i := range 3 {
			t.Cleanup(func() {
				order = append(order, i)
				if t.Context().Err() == nil {
					t.Error("the context continues")
				}
				if i == 1 {
					t.FailNow()
				}
			})
		}
		if err := errors.Join(t.Context().Err()); err != nil || t.Failed() || t.Skipped() {
			t.Errorf("at its beginning: %v, %v, %v", err, t.Failed(), t.Skipped())
		}
		t.Fatal("once more")
	})
	if !slices.Equal(order, []int{2, 1, 0}) || o.failed {
		t.Errorf("cleaned up in the order %v; failed: %v", order, o.failed)
	}
}

func TestWatcher(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ran   time.Duration
		gaps  []time.Duration
		still bool
	}{
		{time.Millisecond, nil, false},
		{time.Millisecond, []time.Duration{time.Second}, true},
		{time.Millisecond, []time.Duration{standstill / 2, standstill / 2}, true},                         // of no time at all
		{time.Hour, []time.Duration{standstill * 9 / 10, standstill * 9 / 10, standstill * 9 / 10}, true}, // of one second
	} {
		now := time.Now()
		w := &StallDetector{stop: make(chan struct{}), stopped: make(chan struct{}), began: now.Add(-c.ran), last: now}
		for _, gap := range c.gaps {
			w.last = time.Now().Add(-gap)
			w.look()
		}
		go w.run()
		if stood, still := w.end(); still != c.still && c.still {
			t.Errorf("after %v: %s, %v", c.gaps, stood, still)
		}
	}
}
