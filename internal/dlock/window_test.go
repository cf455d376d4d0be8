package dlock_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// A notified grant is considered valid for the short time that the store keeps it, and
// renewed within that.
func TestFirstWindowIsShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first = ttl / 10
		for _, ok := range []bool{true, false} {
			s := store{renew: func(context.Context, dlock.Held) error {
				if ok {
					return nil
				}
				return errStore
			}}
			g := grant(nil)
			g.Renewer, g.First = s.renewer(0), first
			start := time.Now()
			lease := dlock.NewLease(t.Context(), g)
			time.Sleep(first/3 + time.Nanosecond)
			synctest.Wait()
			if n := s.count(); n != 1 {
				t.Fatalf("%d renewals in a third of the first window, want 1", n)
			}
			if !ok {
				wantEnd(t, lease, start, first*9/10)
				continue
			}
			time.Sleep(2 * ttl)
			releaseAll(t, []*dlock.Lease{lease})
		}
	})
}

// A release that shares its renewal in flight with others waits for it.
func TestReleaseWaitsForASharedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		landed := make(chan struct{})
		s := store{renew: func(context.Context, dlock.Held) error { <-landed; return nil }}
		leases := batch(t, s.renewer(0), 2)
		time.Sleep(ttl/3 + time.Second)
		done := make(chan error, 1)
		go func() { done <- leases[0].Release(t.Context()) }()
		time.Sleep(time.Second)
		select {
		case <-done:
			t.Error("released while its renewal was under way")
		default:
		}
		close(landed)
		if err := <-done; err != nil {
			t.Error(err)
		}
		releaseAll(t, leases[1:])
	})
}

// A window that closes while the lease is being made leaves no renewals behind:
// they would keep for ever what nobody holds.
func TestWindowThatClosesAtOnceIsNotRenewed(t *testing.T) {
	t.Parallel()
	const ttl, margin = 30 * time.Millisecond, 20 * time.Microsecond // about as long as it takes to make a lease
	var calls atomic.Int64
	r := driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: func(_ context.Context, held []dlock.Held) []error {
		calls.Add(1)
		return make([]error, len(held))
	}})
	for begun := time.Now(); time.Since(begun) < 2*time.Second; {
		g := grant(ok)
		g.TTL, g.Renewer, g.Sent = ttl, r, time.Now().Add(-ttl+ttl/10+rand.N(margin))
		lease := dlock.NewLease(t.Context(), g)
		if lease.Err() == nil {
			lease.Release(t.Context())
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		before := calls.Load()
		<-time.After(5 * ttl)
		if calls.Load() == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a lease that is over is still renewed")
		}
	}
}
