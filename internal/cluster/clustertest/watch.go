package clustertest

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"
)

// Watcher follows a sequence, in a goroutine that ends with the test.
type Watcher[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	steps int
	fresh []T // the values of all steps without an error
	ended bool
}

// Follow begins to follow a sequence.
func Follow[T any](t testing.TB, values func(ctx context.Context) iter.Seq2[T, error]) *Watcher[T] {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &Watcher[T]{}
	var following sync.WaitGroup
	following.Go(func() {
		for value, err := range values(ctx) {
			w.mu.Lock()
			w.value, w.err = value, err
			if w.steps++; err == nil {
				w.fresh = append(w.fresh, value)
			}
			w.mu.Unlock()
		}
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
	})
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	return w
}

// Now returns the latest step of the sequence, and how many there have been.
func (w *Watcher[T]) Now() (value T, steps int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value, w.steps, w.err
}

// Fresh returns the values of all steps without an error.
func (w *Watcher[T]) Fresh() []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.fresh)
}

// Until waits for a step that is ok, and returns how long that took.
func (w *Watcher[T]) Until(t testing.TB, what string, ok func(value T, err error) bool) time.Duration {
	t.Helper()
	start := time.Now()
	Wait(t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ended {
			t.Fatalf("the sequence has ended before: %s", what)
		}
		return w.steps > 0 && ok(w.value, w.err)
	})
	return time.Since(start)
}

// Wait waits until ok returns true, for a time that is long for any machine.
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for end := time.Now().Add(maxWait); !ok(); <-pace.C {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", maxWait, what)
		}
	}
}

// pass lets d pass, in which nothing may happen.
func pass(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// errorLog keeps the errors that an observer receives.
type errorLog struct {
	mu  sync.Mutex
	all []error
}

func (l *errorLog) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err)
}

func (l *errorLog) count(ok func(error) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, err := range l.all {
		if ok(err) {
			n++
		}
	}
	return n
}
