package driver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/driver"
)

func TestLocalQueueIsFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns driver.LocalQueue
		pass, err := turns.Take(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var (
			waiters sync.WaitGroup
			order   []int // guarded by the turn
		)
		for i := range 10 {
			waiters.Go(func() {
				pass, err := turns.Take(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				time.Sleep(time.Second)
				pass(nil)
			})
			synctest.Wait()
		}
		other, err := turns.Take(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		other(nil)
		pass(nil)
		waiters.Wait()
		if len(order) != 10 || !slices.IsSorted(order) {
			t.Errorf("turns in the order %v", order)
		}
	})
}

// Who leaves the queue neither keeps the turn nor the queue.
func TestLocalQueueSkipsCancelledCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns driver.LocalQueue
		pass, err := turns.Take(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		var waiters sync.WaitGroup
		for range 5 {
			waiters.Go(func() {
				if _, err := turns.Take(ctx, "k"); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
					t.Errorf("Take = %v, want the end of the context and its cause", err)
				}
			})
		}
		synctest.Wait()
		cancel(reason)
		waiters.Wait()
		pass(nil)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if pass, err = turns.Take(short, "k"); err != nil {
			t.Fatalf("the turn is lost: %v", err)
		}
		pass(nil)
	})
}

// Who has been waiting fails with the one whose turn it is; who comes later does not.
func TestLocalQueueSharesAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns driver.LocalQueue
		pass, err := turns.Take(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		away := errors.New("the store is unavailable")
		var waiters sync.WaitGroup
		for range 5 {
			waiters.Go(func() {
				start := time.Now()
				pass, err := turns.Take(t.Context(), "k")
				if err == nil { // of two that are ready either may be chosen
					time.Sleep(time.Second)
					pass(away)
				} else if !strings.Contains(err.Error(), away.Error()) || errors.Is(err, away) {
					t.Errorf("Take = %v, want to be notified of the failure, and that it is another one's", err)
				}
				if d := time.Since(start); d > 3*time.Second {
					t.Errorf("told after %v", d)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		pass(away)
		waiters.Wait()
		if pass, err = turns.Take(t.Context(), "k"); err != nil {
			t.Fatalf("Take = %v after a failure of others", err)
		}
		pass(nil)
	})
}

// late is a context that has ended, and whose end nobody has been notified of yet.
type late struct{ context.Context } //nolint:containedctx // It is one.

func (late) Done() <-chan struct{} { return nil }

// Of two reasons to give up, the end of the caller's own time comes first: callers have a name for it.
func TestLocalQueueReturnsTheEndOfTheContextFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns driver.LocalQueue
		pass, err := turns.Take(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failed := make(chan error)
		go func() {
			_, err := turns.Take(late{ctx}, "k")
			failed <- err
		}()
		synctest.Wait()
		pass(errors.New("the store is unavailable"))
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Take = %v, want the end of the context", err)
		}
	})
}
