package dlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// store renews as it is notified, and counts.
type store struct {
	mu    sync.Mutex
	calls []int // keys per call
	renew func(ctx context.Context, h dlock.Held) error
}

func (s *store) renewer(chunk int) *driver.Renewer {
	return driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Chunk: chunk, Renew: func(ctx context.Context, held []dlock.Held) []error {
		s.mu.Lock()
		s.calls = append(s.calls, len(held))
		s.mu.Unlock()
		errs := make([]error, len(held))
		for i, h := range held {
			if s.renew != nil {
				errs[i] = s.renew(ctx, h)
			}
		}
		return errs
	}})
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// batch returns n leases that r keeps alive, of the keys 0 to n-1.
func batch(t *testing.T, r *driver.Renewer, n int) []*dlock.Lease {
	t.Helper()
	var leases []*dlock.Lease
	for i := range n {
		g := grant(ok)
		g.Key, g.Renewer = fmt.Sprint(i), r
		g.Fence.Owner = fmt.Sprint("owner-", i)
		leases = append(leases, dlock.NewLease(t.Context(), g))
	}
	return leases
}

func releaseAll(t *testing.T, leases []*dlock.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRenewalsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		leases := batch(t, s.renewer(0), 250)
		time.Sleep(10*ttl + time.Second)
		if n := s.count(); n != 30*3 {
			t.Errorf("%d calls for 250 leases in 10 TTLs, want 3 each third", n)
		}
		for _, n := range s.calls {
			if n > 100 {
				t.Errorf("a call with %d keys, want 100 at most", n)
			}
		}
		releaseAll(t, leases)
		n := s.count()
		time.Sleep(ttl)
		if s.count() != n {
			t.Error("renewals continue without leases")
		}
	})
}

// Two leases that are due at almost the same time share a call.
func TestRenewalsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := s.renewer(0)
		var leases []*dlock.Lease
		for range 5 {
			leases = append(leases, batch(t, r, 1)...)
			time.Sleep(ttl / 300)
		}
		time.Sleep(10 * ttl)
		if n := s.count(); n > 31 {
			t.Errorf("%d calls for 5 leases in 10 TTLs", n)
		}
		releaseAll(t, leases)
	})
}

// A call that hangs or fails ends the leases in it, and no others.
func TestFailedChunkDoesNotStopOtherChunks(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context) error{
		"fails": func(context.Context) error { return errStore },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store{renew: func(ctx context.Context, h dlock.Held) error {
					if h.Key == "0" {
						return fail(ctx)
					}
					return nil
				}}
				start := time.Now()
				leases := batch(t, s.renewer(1), 4)
				wantEnd(t, leases[0], start, ttl*9/10)
				time.Sleep(5 * ttl)
				releaseAll(t, leases[1:])
			})
		})
	}
}

// A store that ignores its context ends nothing but the leases it was asked for.
func TestStuckChunkDoesNotDelayOtherChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		s := store{renew: func(_ context.Context, h dlock.Held) error {
			if h.Key == "0" {
				<-stuck
			}
			return nil
		}}
		start := time.Now()
		leases := batch(t, s.renewer(1), 3)
		wantEnd(t, leases[0], start, ttl*9/10)
		time.Sleep(5 * ttl)
		close(stuck)
		releaseAll(t, leases[1:])
	})
}

func TestEachLeaseHasItsOwnVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{renew: func(_ context.Context, h dlock.Held) error {
			if h.Key == "1" {
				return &dlock.LostError{Reason: dlock.Taken}
			}
			return nil
		}}
		start := time.Now()
		leases := batch(t, s.renewer(0), 3)
		wantEnd(t, leases[1], start, ttl/3)
		time.Sleep(2 * ttl)
		if lost, _ := errors.AsType[*dlock.LostError](leases[1].Err()); lost.Key != "1" || lost.Reason != dlock.Taken {
			t.Errorf("loss = %+v", lost)
		}
		releaseAll(t, []*dlock.Lease{leases[0], leases[2]})
	})
}

func TestTooFewVerdictsRenewNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: func(context.Context, []dlock.Held) []error { return nil }})
		start := time.Now()
		wantEnd(t, batch(t, r, 1)[0], start, ttl*9/10)
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{ttl / 2, 5 * ttl} {
			var s store
			g := grant(ok)
			g.Renewer, g.MaxHold = s.renewer(0), limit
			start := time.Now()
			lease := dlock.NewLease(t.Context(), g)
			wantEnd(t, lease, start, limit)
			wantReason(t, lease.Err(), dlock.MaxHold)
		}
	})
}

func TestLossIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := s.renewer(0)
		leases := batch(t, r, 2)
		r.Lose("owner-1", &dlock.LostError{Reason: dlock.Forced})
		r.Lose("nobody", dlock.ErrLost)
		if lost, _ := errors.AsType[*dlock.LostError](leases[1].Err()); lost == nil || lost.Reason != dlock.Forced || lost.Key != "1" {
			t.Errorf("Err = %v, want the reason %q", leases[1].Err(), dlock.Forced)
		}
		releaseAll(t, leases[:1])
	})
}

// A callback that blocks in OnEnd delays no other loss, and no release that waits for a renewal.
func TestOnEndMayBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: func(_ context.Context, held []dlock.Held) []error {
			errs := make([]error, len(held))
			for i := range errs {
				errs[i] = dlock.ErrLost
			}
			return errs
		}})
		blocked := make(chan struct{})
		var leases []*dlock.Lease
		for i := range 3 {
			g := grant(ok)
			g.Fence.Owner, g.Renewer = string(rune('a'+i)), r
			lease := dlock.NewLease(t.Context(), g)
			lease.OnEnd(func(error) { <-blocked })
			leases = append(leases, lease)
		}
		time.Sleep(ttl/3 + time.Second) // they are renewed together
		synctest.Wait()
		for i, lease := range leases {
			if !errors.Is(lease.Err(), dlock.ErrLost) {
				t.Errorf("lease %d: %v, want a loss", i, lease.Err())
			}
		}
		close(blocked)
	})
}
