package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// Done ends what was due. A timer that was given a later time meanwhile remains.
func TestMovedWhileHandledFiresAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var q *timeout.Queue
		q, _ = r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if len(b.of("a")) == 1 {
				push, err := q.Reschedule(t.Context(), nil, kind, f.ID, time.Now().Add(time.Minute))
				if err != nil {
					t.Error(err)
				}
				push()
			}
			return timeout.Done()
		}), timeout.Options{})
		r.schedule(q, time.Now(), "a")
		time.Sleep(2 * time.Minute)
		c := b.of("a")
		if len(c) != 2 || c[1].at.Sub(c[0].at) > time.Minute+2*time.Millisecond || c[1].attempt != 1 {
			t.Errorf("calls: %+v, want a second one after a minute", c)
		}
		r.drained()
	})
}

// The later time may have come before the handler is done: what it has seen is older.
func TestDueAgainWhileHandledFiresAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var q *timeout.Queue
		q, _ = r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if len(b.of("a")) == 1 {
				time.Sleep(50 * time.Millisecond)
				r.schedule(q, time.Now(), f.ID)
				time.Sleep(50 * time.Millisecond)
			}
			return timeout.Done()
		}), timeout.Options{})
		r.schedule(q, time.Now(), "a")
		time.Sleep(time.Minute)
		c := b.of("a")
		if len(c) != 2 || c[1].at.Sub(c[0].at) > 250*time.Millisecond || c[1].attempt != 1 {
			t.Errorf("calls: %+v, want a second one at once", c)
		}
		r.drained()
	})
}

// Done ends each timer as it was due. That another one of the batch was due later ends nothing that is newer.
func TestDueAgainBeforeAnotherOfTheBatchFiresAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var q *timeout.Queue
		q, _ = r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			if len(b.of("a")) == 0 && len(batch) == 2 {
				r.schedule(q, time.Now().Add(-time.Minute), "a") // later than it was due, and earlier than b was
			}
			return b.handle(ctx, batch)
		}, timeout.Options{})
		push, err := q.Schedule(t.Context(), nil,
			timeout.Timer{Kind: kind, ID: "a", Due: time.Now().Add(-time.Hour)}, timeout.Timer{Kind: kind, ID: "b", Due: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		push()
		time.Sleep(time.Minute)
		if c := b.of("a"); len(c) != 2 || c[0].batch != 2 || c[1].attempt != 1 {
			t.Errorf("calls: %+v, want one together with b and a second one", c)
		}
		r.drained()
	})
}

// What failed was the timer as the handler has seen it: the one for now is open, with no attempts.
func TestDueAgainWhileFailingFiresAgain(t *testing.T) {
	t.Parallel()
	for verdict, outcome := range map[string]timeout.Outcome{
		"dead":  timeout.Dead(errors.New("hopeless")),
		"retry": timeout.Retry(time.Hour, errors.New("not now")),
	} {
		bubble(t, func(r *rig) {
			t := r.t
			b := newBook()
			var q *timeout.Queue
			q, _ = r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
				if len(b.of("a")) > 1 {
					return timeout.Done()
				}
				time.Sleep(50 * time.Millisecond)
				r.schedule(q, time.Now(), f.ID)
				time.Sleep(50 * time.Millisecond)
				return outcome
			}), timeout.Options{})
			r.schedule(q, time.Now(), "a")
			time.Sleep(time.Minute)
			c := b.of("a")
			if len(c) != 2 || c[1].at.Sub(c[0].at) > 5*time.Second || c[1].attempt != 1 {
				t.Errorf("%s: calls: %+v, want a second one soon", verdict, c)
			}
			r.drained()
		})
	}
}
