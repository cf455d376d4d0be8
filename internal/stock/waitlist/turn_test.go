package waitlist_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock/waitlist"
)

// Units are released just after the last poll and before the wait begins. The signal of the release must not be sent
// before a waiter listens.
func TestNoSignalIsLostBetweenPollAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, memory())
		s := newShelf()
		claim := s.claim(1, 3)
		poll := claim.Poll
		claim.Poll = func(ctx context.Context) (bool, error) {
			worth, err := poll(ctx)
			if !worth {
				s.give(w, 1)
				time.Sleep(100 * time.Millisecond) // Run does now what it can
			}
			return worth, err
		}
		begun := time.Now()
		if err := w.Wait(t.Context(), s.key, claim); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d > time.Second {
			t.Errorf("served after %v, by the fallback poll", d)
		}
	})
}

// deaf is a condition whose signals get lost.
type deaf struct{ dlock.Cond }

func (deaf) Signal(context.Context, *dlock.Lease) error    { return nil }
func (deaf) Broadcast(context.Context, *dlock.Lease) error { return nil }

func TestLostSignalCostsAFallbackPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.Cond, c.FallbackPoll = deaf{c.Cond}, fallbackPoll
		w := start(t, c)
		s := newShelf()
		for id := range 5 {
			done := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(id, 1)) })
			time.Sleep(time.Duration(id+1) * 300 * time.Millisecond)
			given := time.Now()
			s.give(w, 1)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if d := time.Since(given); d > fallbackPoll {
				t.Errorf("served after %v, want a fallback poll's %v at most", d, fallbackPoll)
			}
		}
	})
}

// Somebody has died with the lock of the key: neither signals nor the look with
// the lock held come through.
func TestHeldLockCostsAFallbackPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.FallbackPoll = fallbackPoll
		w := start(t, c)
		s := newShelf()
		lease, err := c.Lock.TryAcquire(t.Context(), "units:"+s.key)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release(t.Context())
		for id := range 3 {
			done := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(id, 1)) })
			time.Sleep(3300 * time.Millisecond)
			given := time.Now()
			s.give(w, 1)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if d := time.Since(given); d > fallbackPoll {
				t.Errorf("served after %v, want a fallback poll's %v at most", d, fallbackPoll)
			}
		}
	})
}

// Others can say that units were released while one tries for seconds, and it stays first.
func TestTryHoldsItsPlaceButNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		w := start(t, c)
		s := newShelf()
		claim := s.claim(1, 1)
		try := claim.Try
		claim.Try = func(ctx context.Context) (bool, error) {
			time.Sleep(5 * time.Second)
			lease, err := c.Lock.TryAcquire(ctx, "units:"+s.key)
			if err != nil {
				t.Errorf("the lock of the units: %v", err)
			} else {
				lease.Release(ctx)
			}
			if _, err := c.Lock.TryAcquire(ctx, "line:"+s.key); !errors.Is(err, dlock.ErrHeld) {
				t.Errorf("the place in the queue: %v, want ErrHeld", err)
			}
			return try(ctx)
		}
		for _, before := range []bool{true, false} { // with the lock held, and without
			if before {
				s.give(nil, 1)
			}
			done := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, claim) })
			time.Sleep(time.Second)
			if !before {
				s.give(w, 1)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Newcomers are quicker time after time: the waiter continues, is still first, and is
// served as soon as nobody is quicker.
func TestNewcomerIsQuicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const newcomers, every = 10, 100 * time.Millisecond
		w := start(t, memory())
		s := newShelf()
		claim := s.claim(1, 1)
		try, tries := claim.Try, 0
		claim.Try = func(ctx context.Context) (bool, error) {
			if tries++; tries <= newcomers {
				s.give(nil, -read(s, &s.units)) // all that is there
			}
			return try(ctx)
		}
		begun := time.Now()
		first := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, claim) })
		time.Sleep(time.Millisecond)
		second := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(2, 1)) })
		for range newcomers + 2 {
			time.Sleep(every)
			s.give(w, 1)
		}
		for _, done := range []<-chan error{first, second} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff([]int{1, 2}, s.served); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
		if d := time.Since(begun); d > (newcomers+3)*every {
			t.Errorf("served after %v; the last unit came after %v", d, (newcomers+2)*every)
		}
	})
}

// Poll and Try contradict each other for good: that must not become a busy loop.
func TestContradictingPollAndTryArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.FallbackPoll = time.Second
		w := start(t, c)
		tries := 0
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := w.Wait(ctx, "sku", waitlist.Claim{
			Poll: func(context.Context) (bool, error) { return true, nil },
			Try:  func(context.Context) (bool, error) { tries++; return false, nil },
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v", err)
		}
		if tries < 30 || tries > 45 {
			t.Errorf("%d tries in 30 s, want one per second after the first few", tries)
		}
	})
}

// The lock service has forgotten who is first: the waiter goes to the queue again,
// behind the one that has become first.
func TestLostPlaceIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		w := start(t, c)
		s := newShelf()
		var waits []<-chan error
		for id := range 2 {
			waits = append(waits, background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(id, 1)) }))
			time.Sleep(time.Millisecond)
		}
		c.Lock.(*memlock.Locker).Expire("line:" + s.key)
		time.Sleep(45 * time.Second)
		s.give(w, 1)
		if err := <-waits[1]; err != nil {
			t.Error(err)
		}
		s.give(w, 1)
		if err := <-waits[0]; err != nil {
			t.Error(err)
		}
		if n := s.standing(t, c); n != 0 {
			t.Errorf("%d wait in the queue", n)
		}
	})
}

// A place that is lost during a try does not cut the try short.
func TestTryOutlastsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		w := start(t, c)
		err := w.Wait(t.Context(), "sku", waitlist.Claim{
			Poll: func(context.Context) (bool, error) { return true, nil },
			Try: func(ctx context.Context) (bool, error) {
				c.Lock.(*memlock.Locker).Expire("line:sku")
				time.Sleep(time.Minute)
				return true, ctx.Err()
			},
		})
		if err != nil {
			t.Error(err)
		}
	})
}
