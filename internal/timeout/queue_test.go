package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/timeout"
)

func TestFiresOnTimeAndNeverEarly(t *testing.T) {
	t.Parallel()
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
			r.stop()
			for _, late := range r.count.fired {
				if late < 0 || late > 2*time.Millisecond {
					t.Errorf("a lateness of %v was reported", late)
				}
			}
		})
	}
}

// A due time with a fraction of a millisecond is rounded up, so that it is not early.
func TestDueIsRoundedUp(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Minute), "a", "b", "c")
		if err := q.Cancel(t.Context(), nil, kind, "a", "unheard-of", "b"); err != nil {
			t.Fatalf("Cancel = %v", err)
		}
		time.Sleep(2 * time.Minute)
		if b.len() != 1 || len(b.of("c")) != 1 {
			t.Errorf("fired: %v, want c alone", b.effects)
		}
	})
}

func TestRescheduledFiresAtItsNewTimeOnly(t *testing.T) {
	t.Parallel()
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

// A push never waits, whatever the index does: what does not fit is dropped,
// counted, and found by a pass.
func TestPushNeverBlocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Entries: 10})
		if err := q.Handle(kind, b.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		due := time.Now().Add(time.Minute)
		r.schedule(q, due, ids(100)...) // nobody runs yet
		if r.count.dropped != 90 {
			t.Errorf("%d entries were dropped, want 90", r.count.dropped)
		}
		r.run(q)
		time.Sleep(2 * time.Minute)
		b.within(t, 100, time.Millisecond)
		b.once(t)
	})
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
		if f.ID != "a" || !f.Due.Equal(due) || f.Attempt != 1 || f.Trace != "00-trace" {
			t.Errorf("fired %+v", f)
		}
	})
}
