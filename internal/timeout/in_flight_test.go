package timeout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
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
		synctest.Wait() // until the first scan is over, which would take the overdue timer alone
		timers := []timeout.Timer{{Kind: kind, ID: "a", Due: time.Now().Add(-time.Hour)}, {Kind: kind, ID: "b", Due: time.Now()}}
		if _, err := q.Schedule(t.Context(), nil, timers...); err != nil {
			t.Fatal(err)
		}
		entries := []timeout.Entry{{ID: "a", At: timers[0].Due}, {ID: "b", At: timers[1].Due}} // at once, so that they are one batch
		if err := r.mem.Schedule(t.Context(), kind, timeout.Base, entries); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if c := b.of("a"); len(c) != 2 || c[0].batch != 2 || c[1].attempt != 1 {
			t.Errorf("calls: %+v, want one together with b and a second one", c)
		}
		r.drained()
	})
}

// A timer fails that the handler has seen in an earlier version. The present one is open, with no attempts.
func TestDueAgainWhileFailingFiresAgain(t *testing.T) {
	t.Parallel()
	for verdict, attempts := range map[string]int{"dead": 1, "retry": 2} {
		bubble(t, func(r *rig) {
			t := r.t
			b := newBook()
			var q *timeout.Queue
			q, _ = r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
				if len(b.of("a")) > 1 {
					return timeout.Done()
				}
				r.schedule(q, time.Now().Add(500*time.Millisecond), f.ID)
				time.Sleep(50 * time.Millisecond)
				return timeout.Retry(time.Hour, errors.New("not now"))
			}), timeout.Options{Attempts: attempts})
			r.schedule(q, time.Now(), "a")
			time.Sleep(time.Minute)
			c := b.of("a")
			if len(c) != 2 || c[1].at.Sub(c[0].at) > 502*time.Millisecond || c[1].attempt != 1 {
				t.Errorf("%s: calls: %+v, want a second one after 500 ms", verdict, c)
			}
			r.drained()
		})
	}
}

// stallingStore takes its time before it prolongs rows: only then do they count an attempt without an error.
type stallingStore struct {
	*memStore
	takes    time.Duration
	prolongs chan struct{} // gets something when that begins
}

func (s stallingStore) Delay(ctx context.Context, kind string, later []timeout.Later) error {
	if slices.ContainsFunc(later, func(l timeout.Later) bool { return l.Attempt > 0 && l.Error == "" }) {
		select {
		case s.prolongs <- struct{}{}:
		default:
		}
		time.Sleep(s.takes)
	}
	return s.memStore.Delay(ctx, kind, later)
}

// The outcome of a handler wins over an extension of its claim that is in flight. The row does not wait for the end of
// a claim that nobody has.
func TestOutcomeWinsOverExtension(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() ([]timeout.Outcome, error){
		"retry":   func() ([]timeout.Outcome, error) { return []timeout.Outcome{timeout.Retry(time.Second, nil)}, nil },
		"requeue": func() ([]timeout.Outcome, error) { return nil, timeout.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) { failWhileProlonged(r, fail) })
		})
	}
}

func failWhileProlonged(r *rig, fail func() ([]timeout.Outcome, error)) {
	t := r.t
	r.link.set(func(l *link) { l.down = true }) // it is the overdue scan that finds the timer
	store := stallingStore{r.store, time.Second, make(chan struct{}, 1)}
	q, err := timeout.New(store, client{r.link, 1, "instance-1"}, timeout.Config{Observer: r.count})
	if err != nil {
		t.Fatal(err)
	}
	b := newBook()
	var failed time.Time
	err = q.Handle(kind, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		if !failed.IsZero() {
			return b.handle(ctx, batch)
		}
		<-store.prolongs
		time.Sleep(store.takes / 2)
		failed = time.Now()
		return fail()
	}, timeout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.run(q)
	r.schedule(q, time.Now(), "a")
	time.Sleep(time.Minute)
	c := b.of("a")
	if len(c) != 1 {
		t.Fatalf("calls after the one that failed: %+v, want one", c)
	}
	if wait := c[0].at.Sub(failed); wait > 5*time.Second {
		t.Errorf("tried again after %v, want the next overdue scan", wait)
	}
	r.drained()
}
