package dlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

const ttl = 30 * time.Second

var (
	fence    = dlock.Fence{Token: 7, Owner: "a"}
	errStore = errors.New("store: connection reset")
)

// grant returns a grant of now that renew renews, and that is released without ado.
func grant(renew func(context.Context) error) dlock.Grant {
	return dlock.Grant{
		Key: "k", Fence: fence, Sent: time.Now(), TTL: ttl, Renewer: renewer(renew),
		Release: func(context.Context) error { return nil },
	}
}

// renewer returns a Renewer for one grant.
func renewer(renew func(context.Context) error) *driver.Renewer {
	return driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: func(ctx context.Context, _ []dlock.Held) []error {
		return []error{renew(ctx)}
	}})
}

func ok(context.Context) error { return nil }

// wantEnd waits for the end of lease and checks when it comes, to the nanosecond.
func wantEnd(t *testing.T, lease *dlock.Lease, since time.Time, want time.Duration) {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(10 * ttl):
		t.Fatal("the lease continues for ever")
	}
	if got := time.Since(since); got != want {
		t.Errorf("the lease ended after %v, want %v", got, want)
	}
}

func wantReason(t *testing.T, err error, want dlock.Reason) {
	t.Helper()
	lost, isLost := errors.AsType[*dlock.LostError](err)
	if !isLost || !errors.Is(err, dlock.ErrLost) {
		t.Fatalf("error = %v, want a loss", err)
	}
	if diff := cmp.Diff(&dlock.LostError{Key: "k", Fence: fence, Reason: want}, lost); diff != "" {
		t.Errorf("loss (-want +got):\n%s", diff)
	}
}

func TestLeaseExpiresWhileARenewalIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		start := time.Now()
		lease := dlock.NewLease(t.Context(), grant(func(context.Context) error {
			<-stuck // and ignores its context
			return nil
		}))
		wantEnd(t, lease, start, ttl*9/10)
		wantReason(t, lease.Err(), dlock.Expired)
		close(stuck)
		wantReason(t, lease.Release(t.Context()), dlock.Expired)
	})
}

// The store counts a TTL from the receipt of an attempt, which is between its sending and its answer.
func TestValidityCountsFromTheSentTimeOfTheLastAcknowledgedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(ok)
		time.Sleep(2 * time.Second) // the answer to the acquisition took that long
		var sent time.Time
		var n atomic.Int32
		g.Renewer = renewer(func(context.Context) error {
			if n.Add(1) > 2 {
				return errStore
			}
			sent = time.Now()
			time.Sleep(3 * time.Second)
			return nil
		})
		lease := dlock.NewLease(t.Context(), g)
		time.Sleep(ttl/3 - 2*time.Second + time.Nanosecond)
		synctest.Wait()
		if got := n.Load(); got != 1 {
			t.Fatalf("%d renewals a third of the TTL after the acquisition was sent, want 1", got)
		}
		<-lease.Done()
		synctest.Wait()
		if got := n.Load(); got < 5 {
			t.Errorf("%d renewals, want some retries after the second", got)
		}
		if got, want := time.Since(sent), ttl*9/10; got != want {
			t.Errorf("validity ended %v after the last acknowledged renewal was sent, want %v", got, want)
		}
		wantReason(t, lease.Err(), dlock.Expired)
	})
}

func TestRenewalsAreRetriedAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		lease := dlock.NewLease(t.Context(), grant(func(ctx context.Context) error {
			n++
			end, bounded := ctx.Deadline()
			if left := time.Until(end); !bounded || left > ttl/6 {
				t.Errorf("attempt %d is bounded by %v, want %v at most", n, left, ttl/6)
			}
			switch n % 3 {
			case 1:
				<-ctx.Done() // no answer
				return ctx.Err()
			case 2:
				return errStore
			}
			return nil
		}))
		time.Sleep(10 * ttl)
		if err := lease.Err(); err != nil {
			t.Fatalf("lost (%v), though every third renewal succeeds", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n < 40 || n > 60 {
			t.Errorf("%d attempts in 10 TTLs, want about 46", n)
		}
	})
}

func TestLossFromTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want dlock.Reason
	}{
		"without a reason": {dlock.ErrLost, dlock.Expired},
		"taken":            {&dlock.LostError{Reason: dlock.Taken}, dlock.Taken},
	} {
		t.Run("renewal "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				lease := dlock.NewLease(t.Context(), grant(func(context.Context) error { return c.err }))
				wantEnd(t, lease, start, ttl/3)
				wantReason(t, lease.Err(), c.want)
			})
		})
		t.Run("release "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := grant(ok)
				g.Release = func(context.Context) error { return c.err }
				lease := dlock.NewLease(t.Context(), g)
				wantReason(t, lease.Release(t.Context()), c.want)
			})
		})
		t.Run("announced "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, d := range []time.Duration{0, ttl} { // with a session, and with a TTL
					var s session
					g := grant(ok)
					g.TTL, g.Renewer = d, &s
					lease := dlock.NewLease(t.Context(), g)
					s.hold.Lose(c.err)
					<-lease.Done()
					wantReason(t, lease.Err(), c.want)
				}
			})
		})
	}
}

// session renews nothing, and ends what it keeps when the test says so.
type session struct{ hold *dlock.Hold }

// Keep implements [dlock.Renewer].
func (s *session) Keep(_ context.Context, h *dlock.Hold) bool {
	s.hold = h
	return true
}

// Forget implements [dlock.Renewer].
func (*session) Forget(*dlock.Hold) <-chan struct{} { return nil }

func TestSessionLeaseLastsUntilTheSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s session
		g := grant(ok)
		g.TTL, g.Renewer = 0, &s
		start := time.Now()
		lease := dlock.NewLease(t.Context(), g)
		time.AfterFunc(time.Hour, func() { s.hold.Lose(nil) })
		time.Sleep(time.Hour - 1)
		if err := lease.Err(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, lease, start, time.Hour)
		wantReason(t, lease.Err(), dlock.Expired)
	})
}

func TestLateGrantIsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(ok)
		time.Sleep(ttl * 9 / 10) // the process was stopped between the request and its answer
		lease := dlock.NewLease(t.Context(), g)
		wantReason(t, lease.Err(), dlock.Expired)
		work, cancel := lease.Context(t.Context())
		defer cancel()
		wantReason(t, context.Cause(work), dlock.Expired)
	})
}

// The end of the validity moves with renewals.
func TestValidUntilMovesWithRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := grant(ok)
		g.Backend, g.Rest = new(int), []dlock.Held{{Key: "l"}}
		g.Renewer = driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: func(_ context.Context, held []dlock.Held) []error {
			return make([]error, len(held))
		}})
		lease := dlock.NewLease(t.Context(), g)
		for _, want := range []time.Duration{ttl * 9 / 10, ttl/3 + ttl*9/10} {
			if got := lease.ValidUntil().Sub(start); got != want {
				t.Errorf("the lease is valid for %v, want %v", got, want)
			}
			time.Sleep(ttl/3 + time.Nanosecond)
			synctest.Wait()
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestContextEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		parent := context.WithValue(t.Context(), name{}, "value")
		lease := dlock.NewLease(t.Context(), grant(ok))
		work, cancel := lease.Context(parent)
		defer cancel()
		if work.Value(name{}) != "value" || work.Err() != nil {
			t.Fatalf("Context = %v", work)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-work.Done()
		if err := context.Cause(work); !errors.Is(err, dlock.ErrReleased) {
			t.Errorf("cause = %v, want ErrReleased", err)
		}
	})
}
