package timeout_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/timeout"
)

func TestFiresOnTimeAndNeverEarly(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 17 * time.Millisecond, 99 * time.Millisecond, time.Second, 5 * time.Minute} {
		bubble(t, func(r *rig) {
			t := r.t
			b := newBook()
			q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
			time.Sleep(time.Minute)
			r.schedule(q, time.Now().Add(delay), ids(300)...)
			time.Sleep(delay + time.Second)
			b.within(t, 300, time.Millisecond)
			b.once(t)
			r.drained()
		})
	}
}

// A due time with a fraction of a millisecond is rounded up, so that it is not early.
func TestDueIsRoundedUp(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		due := time.Now().Add(time.Second + time.Nanosecond)
		r.schedule(q, due, "a")
		row, err := q.Get(t.Context(), kind, "a")
		if err != nil || row.Due.Sub(due) != time.Millisecond-time.Nanosecond {
			t.Errorf("Get = %v, %v, want due at the next millisecond after %v", row.Due, err, due)
		}
		time.Sleep(2 * time.Second)
		if at := b.of("a"); len(at) != 1 || at[0].at.Before(due) {
			t.Errorf("fired at %v, due %v", at, due)
		}
	})
}

func TestCancelledDoesNotFire(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Minute), "a", "b", "c")
		push, err := q.Cancel(t.Context(), nil, kind, "a", "unheard-of")
		if err != nil {
			t.Fatalf("Cancel = %v", err)
		}
		push()
		if _, err := q.Cancel(t.Context(), nil, kind, "b"); err != nil { // push is forgotten
			t.Fatalf("Cancel = %v", err)
		}
		time.Sleep(2 * time.Minute)
		if b.len() != 1 || len(b.of("c")) != 1 {
			t.Errorf("fired: %v, want c alone", b.effects)
		}
	})
}

func TestRescheduledFiresAtItsNewTimeOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		start := time.Now()
		r.schedule(q, start.Add(time.Minute), "later", "sooner", "quietly")
		for id, due := range map[string]time.Duration{"later": 5 * time.Minute, "sooner": time.Second, "quietly": 3 * time.Minute} {
			push, err := q.Reschedule(t.Context(), nil, kind, id, start.Add(due))
			if err != nil {
				t.Fatalf("Reschedule = %v", err)
			}
			if id != "quietly" {
				push()
			}
		}
		if _, err := q.Reschedule(t.Context(), nil, kind, "unheard-of", start); !errors.Is(err, timeout.ErrNotFound) {
			t.Errorf("Reschedule = %v, want ErrNotFound", err)
		}
		time.Sleep(6 * time.Minute)
		b.within(t, 3, time.Millisecond)
		b.once(t)
		if at := b.of("quietly")[0].at.Sub(start); at < 3*time.Minute || at > 3*time.Minute+time.Millisecond {
			t.Errorf("what was moved without a push fired after %v, want 3m", at)
		}
	})
}

func TestInvalidChangesNothing(t *testing.T) {
	now := time.Now()
	cases := map[string]timeout.Timer{
		"no kind":        {ID: "a", Due: now},
		"long kind":      {Kind: strings.Repeat("k", 33), ID: "a", Due: now},
		"odd kind":       {Kind: "order expire", ID: "a", Due: now},
		"brace in kind":  {Kind: "order{1}", ID: "a", Due: now},
		"no id":          {Kind: kind, Due: now},
		"long id":        {Kind: kind, ID: strings.Repeat("i", 65), Due: now},
		"space in id":    {Kind: kind, ID: "a b", Due: now},
		"no ASCII":       {Kind: kind, ID: "ä", Due: now},
		"control":        {Kind: kind, ID: "a\x00", Due: now},
		"no due":         {Kind: kind, ID: "a"},
		"before 1970":    {Kind: kind, ID: "a", Due: time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)},
		"in 11 years":    {Kind: kind, ID: "a", Due: now.AddDate(11, 0, 0)},
		"negative least": {Kind: kind, ID: "a", Due: now, MinVersion: -1},
	}
	for name, timer := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memConfig)
			q := r.queue(timeout.Config{})
			_, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "good", Due: now}, timer)
			if !errors.Is(err, timeout.ErrInvalid) || !strings.Contains(err.Error(), "give ") {
				t.Errorf("Schedule = %v, want ErrInvalid with advice", err)
			}
			if n := r.store.open(); n != 0 {
				t.Errorf("%d timers are stored", n)
			}
		})
	}
}

func TestHandleRefuses(t *testing.T) {
	r := newRig(t, memConfig)
	q := r.queue(timeout.Config{})
	h := newBook().handle
	for name, err := range map[string]error{
		"kind":     q.Handle("", h, timeout.Options{}),
		"handler":  q.Handle(kind, nil, timeout.Options{}),
		"batch":    q.Handle(kind, h, timeout.Options{Batch: 1001}),
		"lease":    q.Handle(kind, h, timeout.Options{Lease: time.Millisecond}),
		"negative": q.Handle(kind, h, timeout.Options{Attempts: -1}),
	} {
		if !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("%s: Handle = %v, want ErrInvalid", name, err)
		}
	}
	if err := q.Handle(kind, h, timeout.Options{}); err != nil {
		t.Errorf("Handle = %v", err)
	}
	if err := q.Handle(kind, h, timeout.Options{}); !errors.Is(err, timeout.ErrInvalid) {
		t.Errorf("a second Handle = %v, want ErrInvalid", err)
	}
	if _, err := timeout.New(r.store, r.mem, timeout.Config{Lane: "{}"}); !errors.Is(err, timeout.ErrInvalid) {
		t.Errorf("New = %v, want ErrInvalid", err)
	}
}

// A push never waits, whatever the index does: what does not fit is dropped,
// counted, and found by the reconciler.
func TestPushNeverBlocks(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Hints: 10})
		if err := q.Handle(kind, b.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		due := time.Now().Add(time.Minute)
		r.schedule(q, due, ids(100)...) // nobody runs yet
		if r.count.dropped != 90 {
			t.Errorf("%d hints were dropped, want 90", r.count.dropped)
		}
		r.run(q)
		time.Sleep(2 * time.Minute)
		b.within(t, 100, time.Millisecond)
		b.once(t)
	})
}

func TestRunOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		q, _ := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		synctest.Wait()
		if err := q.Run(t.Context()); !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("a second Run = %v, want ErrInvalid", err)
		}
		if err := q.Handle("other", newBook().handle, timeout.Options{}); !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("Handle after Run = %v, want ErrInvalid", err)
		}
	})
}

// A kind without a handler here is never claimed here.
func TestUnknownKindIsLeftToOthers(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		other, b := newBook(), newBook()
		q := r.queue(timeout.Config{})
		if err := q.Handle("other", other.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		r.run(q)
		r.schedule(q, time.Now().Add(time.Second), "a")
		time.Sleep(time.Minute)
		if n := r.store.open(); n != 1 || other.len() != 0 {
			t.Errorf("%d open, %d handled by the wrong handler", n, other.len())
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(5 * time.Second)
		if b.len() != 1 {
			t.Error("whoever knows the kind did not get it")
		}
	})
}

// The context of a handler has the values of that of Run, and ends after it.
func TestHandlerGetsWhatWasScheduled(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		got := make(chan timeout.Fired, 1)
		q, _ := r.start(timeout.Config{Trace: func(context.Context) string { return "00-trace" }},
			func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
				got <- batch[0]
				return []timeout.Outcome{timeout.Done()}, nil
			}, timeout.Options{})
		due := time.UnixMilli(time.Now().Add(time.Second).UnixMilli())
		r.schedule(q, due, "a")
		f := <-got
		if f.ID != "a" || !f.Due.Equal(due) || f.Attempt != 1 || f.Fence == 0 || f.Trace != "00-trace" {
			t.Errorf("fired %+v", f)
		}
	})
}
