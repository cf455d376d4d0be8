package dlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

func TestReleaseWaitsForARenewalInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		g := grant(func(ctx context.Context) error {
			log = append(log, "renewal sent")
			<-ctx.Done()
			time.Sleep(time.Second) // until the client notices
			log = append(log, "renewal ended")
			return ctx.Err()
		})
		g.Release = func(context.Context) error { log = append(log, "release sent"); return nil }
		lease := dlock.NewLease(t.Context(), g)
		time.Sleep(ttl/3 + time.Second)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{"renewal sent", "renewal ended", "release sent"}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		time.Sleep(10 * ttl)
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("after the release (-want +got):\n%s", diff)
		}
	})
}

// So does the Close of a Renewer, which loses the lease first.
func TestCloseWaitsForARenewalInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		g := grant(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second) // until the client notices
			log = append(log, "renewal ended")
			return ctx.Err()
		})
		g.Release = func(context.Context) error { log = append(log, "release sent"); return nil }
		dlock.NewLease(t.Context(), g)
		time.Sleep(ttl/3 + time.Second)
		if err := g.Renewer.(*driver.Renewer).Close(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"renewal ended", "release sent"}, log); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// A renewal that does not return must not hold Release back for ever. The store is not left with the grant: it is released
// when the renewal has returned.
func TestReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var released atomic.Int32
		g := grant(func(context.Context) error { <-stuck; return nil })
		g.Release = func(context.Context) error { released.Add(1); return nil }
		lease := dlock.NewLease(t.Context(), g)
		time.Sleep(ttl/3 + time.Second)
		start := time.Now()
		err := lease.Release(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v, want a deadline", err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("Release took %v, want 5s", d)
		}
		time.Sleep(ttl)
		if released.Load() != 0 {
			t.Error("the release was sent beside the renewal")
		}
		close(stuck)
		time.Sleep(ttl)
		if n := released.Load(); n != 1 {
			t.Errorf("%d releases were sent, want one", n)
		}
	})
}

// The deadline of a caller bounds its release as well, but for half a second in which most releases succeed.
func TestReleaseEndsSoonAfterTheDeadline(t *testing.T) {
	for _, left := range []time.Duration{-time.Second, 0, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := grant(ok)
			g.Release = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			lease := dlock.NewLease(t.Context(), g)
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			start := time.Now()
			if err := lease.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Release = %v, want a deadline", err)
			}
			if d := time.Since(start); d != max(left, 500*time.Millisecond) {
				t.Errorf("Release took %v with %v left", d, left)
			}
		})
	}
}

func TestReleaseIsDetachedFromItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		g := grant(ok)
		g.TTL = time.Second
		g.Release = func(ctx context.Context) error {
			end, bounded := ctx.Deadline()
			if ctx.Err() != nil || ctx.Value(name{}) != "value" || !bounded || time.Until(end) != time.Second {
				t.Errorf("the release runs under %v", ctx)
			}
			return nil
		}
		lease := dlock.NewLease(t.Context(), g)
		dead, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "value"))
		cancel()
		if err := lease.Release(dead); err != nil {
			t.Error(err)
		}
	})
}

// A release that got no answer is over too: nothing renews the key any more.
func TestReleaseThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int32
		g := grant(func(context.Context) error { renewals.Add(1); return nil })
		g.Release = func(context.Context) error { return errStore }
		lease := dlock.NewLease(t.Context(), g)
		var outcomes []error
		lease.OnEnd(func(err error) { outcomes = append(outcomes, err) })
		if err := lease.Release(t.Context()); !errors.Is(err, errStore) || errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v, want %v", err, errStore)
		}
		if len(outcomes) != 1 || !errors.Is(outcomes[0], errStore) {
			t.Errorf("OnEnd got %v, want %v once", outcomes, errStore)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, dlock.ErrReleased) {
			t.Errorf("second Release = %v, want ErrReleased", err)
		}
		time.Sleep(10 * ttl)
		if n := renewals.Load(); n != 0 {
			t.Errorf("%d renewals after the release", n)
		}
	})
}

func TestOnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []error
		record := func(err error) { got = append(got, err) }

		lease := dlock.NewLease(t.Context(), grant(ok))
		lease.OnEnd(record)
		lease.Release(t.Context()) // the call comes before Release returns
		lease.OnEnd(record)        // at once, because the lease has ended
		if len(got) != 2 || !errors.Is(got[0], dlock.ErrReleased) || !errors.Is(got[1], dlock.ErrReleased) {
			t.Fatalf("OnEnd got %v, want ErrReleased twice", got)
		}

		got = nil
		lease = dlock.NewLease(t.Context(), grant(func(context.Context) error { return dlock.ErrLost }))
		lease.OnEnd(record)
		time.Sleep(ttl)
		synctest.Wait()
		lease.Release(t.Context())
		if len(got) != 1 {
			t.Fatalf("OnEnd got %v, want one loss", got)
		}
		wantReason(t, got[0], dlock.Expired)

		// The store turns out to have given the key to another.
		got = nil
		g := grant(ok)
		g.Release = func(context.Context) error { return &dlock.LostError{Reason: dlock.Taken} }
		lease = dlock.NewLease(t.Context(), g)
		lease.OnEnd(record)
		lease.Release(t.Context())
		if len(got) != 1 {
			t.Fatalf("OnEnd got %v, want one loss", got)
		}
		wantReason(t, got[0], dlock.Taken)
	})
}

// A concurrent release and loss have one outcome. A Release that reports a loss has asked the store, or the lease was
// lost, and Err returns the same.
func TestReleaseAndLossAtTheSameTime(t *testing.T) {
	t.Parallel()
	const races = 20_000
	r := renewer(ok)
	released, lost := 0, 0
	for n := range races {
		g := grant(ok)
		g.Renewer = r
		asked := false
		g.Release = func(context.Context) error {
			asked = true
			return nil
		}
		lease := dlock.NewLease(t.Context(), g)
		notified := make(chan struct{})
		go func() {
			defer close(notified)
			r.Lose(fence.Owner, dlock.ErrLost)
		}()
		if n%2 == 0 {
			runtime.Gosched() // a machine with one free processor would always run this goroutine first
		}
		err := lease.Release(t.Context())
		<-notified
		switch {
		case err == nil && asked && errors.Is(lease.Err(), dlock.ErrReleased):
			released++
		case errors.Is(err, dlock.ErrLost) && !asked && errors.Is(lease.Err(), dlock.ErrLost):
			lost++
		default:
			t.Fatalf("Release = %v, the store was asked: %v, Err = %v", err, asked, lease.Err())
		}
	}
	if released == 0 || lost == 0 {
		t.Errorf("%d released, %d lost: that proves nothing", released, lost)
	}
}

// The end of a grant comes once, after the last of its leases and after the store was
// asked, whatever ended it.
func TestEndedIsCalledAtTheEndOfTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &dlock.LostError{Key: "k", Fence: fence, Reason: dlock.Taken}
		for name, c := range map[string]struct {
			end  func(l *dlock.Lease, r *driver.Renewer)
			asks bool
			want error
		}{
			"release":        {func(l *dlock.Lease, _ *driver.Renewer) { l.Release(t.Context()) }, true, dlock.ErrReleased},
			"failed release": {func(l *dlock.Lease, _ *driver.Renewer) { l.Release(t.Context()) }, true, errStore},
			"loss":           {func(_ *dlock.Lease, r *driver.Renewer) { r.Lose(fence.Owner, lost) }, false, dlock.ErrLost},
			"yield": {func(l *dlock.Lease, _ *driver.Renewer) {
				l.Yield(t.Context(), func(context.Context) error { return nil })
			}, false, dlock.ErrReleased},
		} {
			var outcomes []error
			asked := false
			g := grant(ok)
			g.Backend = t
			r := renewer(ok)
			g.Renewer = r
			g.Release = func(context.Context) error {
				asked = true
				if errors.Is(c.want, errStore) {
					return errStore
				}
				return nil
			}
			g.Ended = func(outcome error) {
				if asked != c.asks {
					t.Errorf("%s: the store was asked before: %v", name, asked)
				}
				outcomes = append(outcomes, outcome)
			}
			outer := dlock.NewLease(t.Context(), g)
			within, cancel := outer.Context(t.Context())
			inner, err := dlock.Reenter(within, t, "k")
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			outer.Release(t.Context())
			if len(outcomes) > 0 {
				t.Errorf("%s: ended with the first of two leases", name)
			}
			c.end(inner, r)
			if len(outcomes) != 1 || !errors.Is(outcomes[0], c.want) {
				t.Errorf("%s: ended with %v, want %v", name, outcomes, c.want)
			}
		}
	})
}
