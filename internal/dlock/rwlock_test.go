package dlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/semlock"
)

func TestRWMutex(t *testing.T) {
	const readers = 30 // more than a conformance test has at once
	s := memsem.New(memsem.Config{Permits: readers, TTL: 10 * time.Second})
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New:    func(testing.TB) dlock.RWLocker { return semlock.RWMutex(s, readers) },
		TTL:    10 * time.Second,
		Expire: func(_ testing.TB, key string) { s.Expire(key) },
		FIFO:   true,
		Bubble: synctest.Test,
	})
}

// TestTextbookRW is without FIFO: readers that come while a writer holds the key go before the next writer.
func TestTextbookRW(t *testing.T) {
	const readers = 30 // more than a conformance test has at once
	l := memlock.New(memlock.Config{TTL: 10 * time.Second})
	s := memsem.New(memsem.Config{Permits: readers, TTL: 10 * time.Second})
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New:    func(testing.TB) dlock.RWLocker { return textbookRW{l, s, readers} },
		TTL:    10 * time.Second,
		Expire: func(_ testing.TB, key string) { s.Expire(key) }, // the lock of a writer that waits stays
		Bubble: synctest.Test,
	})
}

// A writer's lease is two: the loss of either is its loss, and says why.
func TestTextbookRWLosesAPart(t *testing.T) {
	for _, part := range []string{"lock", "permits"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				l := memlock.New(memlock.Config{})
				s := memsem.New(memsem.Config{Permits: 4})
				rw := textbookRW{l, s, 4}
				lease, err := rw.Acquire(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				if part == "lock" {
					l.Expire("k")
				} else {
					s.Expire("k")
				}
				select {
				case <-lease.Done():
				case <-ctx.Done():
					t.Error("the lease continues")
				}
				lost, _ := errors.AsType[*dlock.LostError](lease.Release(ctx))
				if lost == nil || lost.Fence != lease.Fence() || lost.Reason != dlock.Expired {
					t.Errorf("Release = %+v, want the loss of this lease", lost)
				}
				synctest.Wait()
				next, err := rw.TryAcquire(ctx, "k") // the other part is free as well
				if err != nil {
					t.Fatal(err)
				}
				next.Release(ctx)
			})
		})
	}
}
