package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// each makes a handler of a function for one timer.
func each(b *book, f func(timeout.Fired) timeout.Outcome) timeout.Handler {
	return func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		b.note(batch)
		out := make([]timeout.Outcome, len(batch))
		for i, fired := range batch {
			out[i] = f(fired)
		}
		return out, nil
	}
}

// poisoned is a handler that fails as a whole when a timer of the batch is poison.
func poisoned(b *book, fail func() error) timeout.Handler {
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		for _, f := range batch {
			if strings.HasPrefix(f.ID, "poison") {
				b.note(batch)
				return nil, fail()
			}
		}
		return b.handle(ctx, batch)
	}
}

// One bad timer of a batch is found by halving, tried again alone, and dead in the end. The other timers are handled
// once, and at once.
func TestPoisonDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("a bad row") },
		"panic": func() error { panic("a bad row") },
		"count": func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				t := r.t
				b := newBook()
				h := poisoned(b, fail)
				q, _ := r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
					for _, f := range batch {
						if (f.Attempt > 1) != (batch[0].Attempt > 1) {
							t.Error("what has failed before shares a batch with what has not")
						}
					}
					return h(ctx, batch)
				}, timeout.Options{Attempts: 4})
				all := append(ids(126), "poison-1", "poison-2")
				r.schedule(q, time.Now().Add(time.Second), all...)
				for i := range 2000 {
					r.schedule(q, time.Now().Add(time.Second), fmt.Sprint("fresh-", i))
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Minute)
				b.within(t, 2126, time.Millisecond)
				b.once(t)
				for _, id := range []string{"poison-1", "poison-2"} {
					row, err := q.Get(t.Context(), kind, id)
					if err != nil || row.State != timeout.Dead || row.Attempt != 4 || row.LastError == "" {
						t.Errorf("%s: %+v, %v, want it dead after 4 attempts", id, row, err)
					}
				}
			})
		})
	}
}

func TestRetryBacksOffAndCounts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if f.Attempt < 5 {
				return timeout.Retry(time.Duration(f.Attempt)*time.Second, fmt.Errorf("attempt %d", f.Attempt))
			}
			return timeout.Done()
		}), timeout.Options{})
		r.schedule(q, time.Now().Add(time.Second), "a")
		time.Sleep(time.Minute)
		calls := b.of("a")
		if len(calls) != 5 {
			t.Fatalf("%d calls, want 5", len(calls))
		}
		for i, c := range calls {
			if c.attempt != i+1 {
				t.Errorf("call %d is attempt %d", i+1, c.attempt)
			}
			if i > 0 {
				want := time.Duration(i) * time.Second
				if got := c.at.Sub(calls[i-1].at); got < want-time.Millisecond || got > want+5*time.Millisecond {
					t.Errorf("attempt %d came after %v, want %v", i+1, got, want)
				}
			}
		}
		r.drained()
	})
}

func TestNotDueCountsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		start := time.Now()
		due := start.Add(time.Minute)
		q, _ := r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if time.Now().Before(due) {
				return timeout.NotDue(due)
			}
			b.effect(f)
			return timeout.Done()
		}), timeout.Options{})
		r.schedule(q, start, "a")
		time.Sleep(2 * time.Minute)
		calls := b.of("a")
		if len(calls) != 2 || calls[1].attempt != 1 || calls[1].at.Before(due) || calls[1].at.Sub(due) > 5*time.Millisecond {
			t.Errorf("calls: %+v, want two first attempts, the last at %v", calls, due)
		}
	})
}

// A row may stay locked by others for longer than any number of attempts would take.
func TestAgainCountsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		start := time.Now()
		q, _ := r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if time.Since(start) < 10*time.Minute {
				return timeout.Again(2 * time.Second)
			}
			b.effect(f)
			return timeout.Done()
		}), timeout.Options{Attempts: 2})
		r.schedule(q, start, "a")
		time.Sleep(11 * time.Minute)
		calls := b.of("a")
		if n := len(calls); n < 150 || n > 301 {
			t.Errorf("%d calls in 10 minutes, with 2 to 4 s between them", n)
		}
		for i, c := range calls {
			if c.attempt != 1 {
				t.Errorf("call %d counts as attempt %d", i, c.attempt)
			}
			if i > 0 && c.at.Sub(calls[i-1].at) < 2*time.Second {
				t.Errorf("call %d came %v after the one before", i, c.at.Sub(calls[i-1].at))
			}
		}
		r.drained()
	})
}

// While what the handler depends on is away, nothing is an attempt and nothing is hammered.
func TestUnavailableCountsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var away atomic.Bool
		var calls atomic.Int32
		q, _ := r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			calls.Add(1)
			if away.Load() {
				return nil, fmt.Errorf("the bank: %w", timeout.ErrUnavailable)
			}
			return b.handle(ctx, batch)
		}, timeout.Options{Attempts: 2})
		away.Store(true)
		r.schedule(q, time.Now().Add(time.Second), ids(100)[:50]...)
		for _, id := range ids(100)[50:] {
			r.schedule(q, time.Now(), id)
			time.Sleep(time.Second)
		}
		if n := calls.Load(); n > 30 {
			t.Errorf("%d calls in a minute, want a pause that grows", n)
		}
		away.Store(false)
		time.Sleep(20 * time.Second)
		b.within(t, 100, time.Minute+20*time.Second)
		b.once(t)
		for _, id := range ids(100) {
			if c := b.of(id); c[0].attempt != 1 {
				t.Errorf("%s fired with attempt %d", id, c[0].attempt)
			}
		}
	})
}

func TestDatabaseOutageCountsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{Attempts: 2})
		time.Sleep(time.Second)
		r.schedule(q, time.Now().Add(time.Second), ids(100)...)
		r.store.setDown(true)
		time.Sleep(30 * time.Second)
		r.store.setDown(false)
		time.Sleep(10 * time.Second)
		b.within(t, 100, 40*time.Second)
		b.once(t)
		r.drained()
	})
}
