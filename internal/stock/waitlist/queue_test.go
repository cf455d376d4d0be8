package waitlist_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock/waitlist"
)

// Customers of several processes are served in the order in which they came, whether units are released one by one or
// several at once.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const customers = 24
			s := newShelf()
			var lists []*waitlist.Waitlist
			var c waitlist.Config
			for range 3 {
				c = process(t)
				lists = append(lists, start(t, c))
			}
			var waits []<-chan error
			var want []int
			for i := range customers {
				w := lists[rand.N(len(lists))]
				waits = append(waits, background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(i, 1)) }))
				want = append(want, i)
				testbedtest.Eventually(t, "the customer stands in line", func() bool { return s.standing(t, c) == i+1 })
			}
			for given := 0; given < customers; {
				n := min(1+rand.N(5), customers-given)
				given += n
				s.give(lists[rand.N(len(lists))], n)
				testbedtest.Eventually(t, "who is first is served", func() bool { return s.count() == given })
			}
			for _, done := range waits {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(want, s.served); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// The first in the queue wants five. A waiter that wants one stays behind it, though there is one.
func TestHeadOfTheQueueIsNotOvertaken(t *testing.T) {
	t.Parallel()
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newShelf(), process(t)
			w := start(t, c)
			first := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(1, 5)) })
			testbedtest.Eventually(t, "the first one stands in line", func() bool { return s.standing(t, c) == 1 })
			second := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(2, 1)) })
			testbedtest.Eventually(t, "the second one stands in line", func() bool { return s.standing(t, c) == 2 })
			testbedtest.Eventually(t, "the first one has looked, and waits", func() bool { return read(s, &s.looks) >= 2 })
			for range 4 {
				looks := read(s, &s.looks)
				s.give(w, 1)
				testbedtest.Eventually(t, "the first one looks", func() bool { return read(s, &s.looks) > looks })
			}
			if tries := read(s, &s.tries); tries != 0 {
				t.Errorf("%d tries with less than five units", tries)
			}
			s.give(w, 2)
			for _, done := range []<-chan error{first, second} {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff([]int{1, 2}, s.served); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// Units are released through any process, and more customers wait than there are units. There is no fallback poll: a
// signal that is lost would be missed.
func TestReleasedUnitsServeAsManyCustomers(t *testing.T) {
	t.Parallel()
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const units, more = 60, 20
			s := newShelf()
			var lists []*waitlist.Waitlist
			for range 3 {
				lists = append(lists, start(t, process(t)))
			}
			soldOut := errors.New("the sale is over")
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			var all sync.WaitGroup
			var served, refused atomic.Int32
			for i := range units + more {
				w := lists[i%len(lists)]
				all.Go(func() {
					sleepUpTo(300 * time.Millisecond)
					switch err := w.Wait(ctx, s.key, s.claim(i, 1)); {
					case err == nil:
						served.Add(1)
					case errors.Is(err, soldOut) && errors.Is(err, context.Canceled):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			for range units {
				all.Go(func() {
					sleepUpTo(600 * time.Millisecond)
					s.give(lists[rand.N(len(lists))], 1)
				})
			}
			testbedtest.Eventually(t, "all units have customers", func() bool { return s.count() == units })
			end(soldOut)
			all.Wait()
			if served.Load() != units || refused.Load() != more || s.units != 0 {
				t.Errorf("%d of %d were served and %d refused, %d units are left", served.Load(), units+more, refused.Load(), s.units)
			}
		})
	}
}

// Most customers give up at random, also when they are first or just being notified. In the end there are units for
// everybody, and no more notifications. All remaining waiters must get their units, and the queue must be empty.
func TestLeavingWaiterTakesNoSignal(t *testing.T) {
	t.Parallel()
	for name, process := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const stay, leave = 30, 300
			s := newShelf()
			var lists []*waitlist.Waitlist
			var c waitlist.Config
			for range 3 {
				c = process(t)
				lists = append(lists, start(t, c))
			}
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			var all sync.WaitGroup
			var left atomic.Int32
			for i := range stay + leave {
				w := lists[i%len(lists)]
				all.Go(func() {
					sleepUpTo(500 * time.Millisecond)
					ctx := ctx
					if i >= stay {
						short, cancel := context.WithTimeout(ctx, rand.N(time.Second))
						defer cancel()
						ctx = short
					}
					err := w.Wait(ctx, s.key, s.claim(i, 1))
					if i >= stay && errors.Is(err, context.DeadlineExceeded) {
						left.Add(1)
					} else if err != nil {
						t.Errorf("customer %d: %v", i, err)
					}
				})
			}
			for range stay + leave {
				all.Go(func() {
					sleepUpTo(2 * time.Second)
					s.give(lists[rand.N(len(lists))], 1)
				})
			}
			all.Wait()
			t.Logf("%d of %d left in time", left.Load(), leave)
			if len(s.served)+s.units != stay+leave || len(s.served)+int(left.Load()) != stay+leave {
				t.Errorf("%d served, %d left, %d units, want %d", len(s.served), left.Load(), s.units, stay+leave)
			}
			slices.Sort(s.served)
			if len(slices.Compact(s.served)) != len(s.served) {
				t.Error("somebody was served twice")
			}
			for _, w := range lists {
				if n := w.Waiting(); n != 0 {
					t.Errorf("%d wait", n)
				}
			}
			testbedtest.Eventually(t, "the line is empty", func() bool { return s.standing(t, c) == 0 })
		})
	}
}

func sleepUpTo(d time.Duration) { <-time.After(rand.N(d)) }
