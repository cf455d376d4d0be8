package waitlist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock/waitlist"
)

// full reports whether somebody who wants a unit of key is turned away.
func full(t *testing.T, w *waitlist.Waitlist, key, owner string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := w.Wait(ctx, key, waitlist.Claim{
		Owner: owner,
		Poll:  func(context.Context) (bool, error) { return false, nil },
	})
	if !errors.Is(err, waitlist.ErrFull) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return errors.Is(err, waitlist.ErrFull)
}

// crowd has waiters come for key until one is turned away, and returns how many wait. They go when stop is called.
func crowd(t *testing.T, w *waitlist.Waitlist, key string, owner func(i int) string) (n int, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for ; ; n++ {
		go func() {
			done <- w.Wait(ctx, key, waitlist.Claim{
				Owner: owner(n),
				Poll:  func(context.Context) (bool, error) { return false, nil },
			})
		}()
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, waitlist.ErrFull) {
				t.Fatal(err)
			}
			return n, func() {
				cancel()
				for range n {
					<-done
				}
			}
		default:
		}
	}
}

// One owner has a few places, whatever it waits for; the others have theirs.
func TestOneOwnerDoesNotFillTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, memory())
		n, stop := crowd(t, w, "a", func(int) string { return "greedy" })
		if n != 20 || !full(t, w, "b", "greedy") || full(t, w, "a", "other") || full(t, w, "b", "other") {
			t.Errorf("%d places for one owner, want 20, and all others for others", n)
		}
		stop()
		if full(t, w, "a", "greedy") || w.Waiting() != 0 {
			t.Error("the places are not free when their owner has left")
		}
	})
}

// A key that is in demand leaves places for others: as many as it has itself. So does the next one.
func TestOneKeyLeavesPlacesForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.Max = 64
		w := start(t, c)
		var stops []func()
		for i, want := range []int{32, 16, 8, 4, 2, 1} {
			n, stop := crowd(t, w, fmt.Sprint("key", i), func(i int) string { return fmt.Sprint(i) })
			if stops = append(stops, stop); n != want {
				t.Errorf("key %d has %d of %d places, want %d", i, n, c.Max, want)
			}
		}
		if full(t, w, "new", "new") {
			t.Error("there is no place for another key")
		}
		for _, stop := range stops {
			stop()
		}
		if n, stop := crowd(t, w, "key0", func(i int) string { return fmt.Sprint(i) }); n != 32 {
			t.Errorf("%d places when all have left", n)
		} else {
			stop()
		}
	})
}
