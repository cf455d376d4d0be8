package waitlist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock/waitlist"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	l := memlock.New(memlock.Config{})
	for what, c := range map[string]waitlist.Config{
		"no lock":                {Cond: memlock.NewCond(l)},
		"no condition":           {Lock: l},
		"negative max":           {Lock: l, Cond: memlock.NewCond(l), Max: -1},
		"negative owner":         {Lock: l, Cond: memlock.NewCond(l), MaxPerOwner: -1},
		"negative fallback poll": {Lock: l, Cond: memlock.NewCond(l), FallbackPoll: -1},
	} {
		if _, err := waitlist.New(c); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// Which keys are taken, and that every lock service takes those.
func TestKeys(t *testing.T) {
	t.Parallel()
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, process(t))
			now := waitlist.Claim{
				Poll: func(context.Context) (bool, error) { return true, nil },
				Try:  func(context.Context) (bool, error) { return true, nil },
			}
			for _, key := range []string{"a", "sku:A-1_b.c", strings.Repeat("k", 128)} {
				if err := w.Wait(t.Context(), key, now); err != nil {
					t.Errorf("%q: %v", key, err)
				}
			}
			for _, key := range []string{"", "a b", "{a}", "a}", "ä", "a\x00", strings.Repeat("k", 129)} {
				w.Notify(key)
				if err := w.Wait(t.Context(), key, now); !errors.Is(err, waitlist.ErrKey) {
					t.Errorf("%q: %v, want ErrKey", key, err)
				}
			}
		})
	}
}

func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.Max = 6 // half of them for one key
		w := start(t, c)
		s := newShelf()
		var waits []<-chan error
		for id := range 3 {
			waits = append(waits, background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(id, 1)) }))
		}
		time.Sleep(time.Second)
		if err := w.Wait(t.Context(), s.key, s.claim(3, 1)); !errors.Is(err, waitlist.ErrFull) || w.Waiting() != 3 {
			t.Errorf("the fourth of %d: %v, want ErrFull", w.Waiting(), err)
		}
		s.give(w, 4)
		for _, done := range waits {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := w.Wait(t.Context(), s.key, s.claim(3, 1)); err != nil {
			t.Error(err)
		}
	})
}

// A look or a try that fails ends the wait with the error of the try, and frees the place.
func TestErrorsOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		w := start(t, c)
		limit := errors.New("the limit of the customer")
		for _, worth := range []bool{true, false} {
			err := w.Wait(t.Context(), "sku", waitlist.Claim{
				Poll: func(context.Context) (bool, error) {
					if !worth {
						return false, errors.New("no such table")
					}
					return true, nil
				},
				Try: func(context.Context) (bool, error) { return false, fmt.Errorf("order: %w", limit) },
			})
			if !errors.Is(err, limit) {
				t.Errorf("Wait = %v, want the error of Try", err)
			}
		}
		s := &shelf{key: "sku"}
		if n := s.standing(t, c); n != 0 {
			t.Errorf("%d wait in the queue", n)
		}
	})
}

// A panic is the caller's. The places of the queue, and the lock, are free after it.
func TestPanicFreesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		w := start(t, c)
		boom := func(context.Context) (bool, error) { panic("boom") }
		looks := 0
		for _, claim := range []waitlist.Claim{
			{Poll: func(context.Context) (bool, error) { return true, nil }, Try: boom},
			{Poll: boom},
			{Poll: func(ctx context.Context) (bool, error) { // the second look is made with the lock held
				if looks++; looks == 2 {
					return boom(ctx)
				}
				return false, nil
			}},
		} {
			func() {
				defer func() { recover() }()
				w.Wait(t.Context(), "sku", claim)
				t.Error("no panic")
			}()
			for _, key := range []string{"line:sku", "units:sku"} {
				lease, err := c.Lock.TryAcquire(t.Context(), key)
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				lease.Release(t.Context())
			}
			if n := w.Waiting(); n != 0 {
				t.Errorf("%d wait", n)
			}
		}
	})
}

// The end of a context comes with its cause, wherever the waiter is: first in the queue,
// behind, not yet there, or without a queue.
func TestContextEndsTheWait(t *testing.T) {
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := process(t)
			w, s, stopping := start(t, c), newShelf(), errors.New("the server stops")
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var waits []<-chan error
			for id := range 3 {
				waits = append(waits, background(t, func(context.Context) error { return w.Wait(ctx, s.key, s.claim(id, 1)) }))
			}
			lost := start(t, waitlist.Config{Lock: c.Lock, Cond: c.Cond, Queue: absent()})
			waits = append(waits, background(t, func(context.Context) error { return lost.Wait(ctx, s.key, s.claim(3, 1)) }))
			testbedtest.Eventually(t, "three stand in line, and one looks", func() bool {
				return s.standing(t, c) == 3 && lost.Waiting() == 1
			})
			stop(stopping)
			stopped := time.Now()
			waits = append(waits, background(t, func(context.Context) error { return w.Wait(ctx, s.key, s.claim(4, 1)) }))
			for id, done := range waits {
				if err := <-done; !errors.Is(err, stopping) || !errors.Is(err, context.Canceled) {
					t.Errorf("customer %d: %v, want the cause", id, err)
				}
			}
			testbedtest.Eventually(t, "the line is empty", func() bool { return s.standing(t, c) == 0 })
			testbedtest.Eventually(t, "the lock is free", func() bool { // one that was granted meanwhile is released in the background
				lease, err := c.Lock.TryAcquire(t.Context(), "units:"+s.key)
				if err != nil {
					return false
				}
				lease.Release(t.Context())
				return true
			})
			if took := time.Since(stopped); took > 20*time.Second { // a lease that is lost takes 30 s to expire
				t.Errorf("the lock was free %v after the end", took)
			}
		})
	}
}
