package sqllock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A waiter whose attempt got no answer finds its grant by its next poll.
func TestWaiterFindsItsGrant(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		l, s, other, _ := scripted(t)
		held := take(t, other, "k")
		lost := make(chan struct{})
		s.Play(nil, func(n int, statement string) error {
			if n > 1 && strings.HasPrefix(statement, "INSERT") && !closed(lost) {
				close(lost)
				return mysql.ErrInvalidConn
			}
			return nil
		})
		granted := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := l.Acquire(ctx, "k")
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		testbedtest.Eventually(t, "a look", func() bool { return len(s.Sent()) > 2 })
		held.Release(t.Context())
		lease := <-granted
		if lease == nil {
			return
		}
		state, err := other.Inspect(t.Context(), "k")
		if !closed(lost) || err != nil || state.Fence != lease.Fence() {
			t.Errorf("lost: %v; held by %+v, %v; the lease has %+v", closed(lost), state.Fence, err, lease.Fence())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Each waiter polls once per pause, and a poll only reads.
func TestWaitersPollAtTheirPace(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		st := mariaDB(testbedtest.Database(t))
		st.create(t)
		other := st.locker(t, sqllock.Config{TTL: ttl})
		s := new(testbedtest.SQLScript)
		st.wrap = s.Wrap
		const step = 50 * time.Millisecond
		l := st.locker(t, sqllock.Config{TTL: ttl})
		l.SetPauses(backoff.Decorrelated{Min: step, Max: step})
		held := take(t, other, "k")
		const waiters = 30
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range waiters {
			waiting.Go(func() {
				if _, err := l.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire = %v", err)
				}
			})
		}
		testbedtest.Eventually(t, "all to wait", func() bool { return len(s.Sent()) > 3*waiters })
		start := time.Now()
		s.Play(nil, nil)
		<-time.After(10 * step)
		polls := s.Sent()
		if most := waiters * (2 + int(time.Since(start)/step)); len(polls) > most {
			t.Errorf("%d waiters polled %d times, want %d at most", waiters, len(polls), most)
		}
		for _, statement := range polls {
			if !strings.HasPrefix(statement, "SELECT") {
				t.Errorf("a waiter sent %q", statement)
			}
		}
		cancel()
		waiting.Wait()
		held.Release(t.Context())
	})
}

// A waiter does not sleep past the end of the lease that it waits for.
func TestWaiterPollsWhenTheLeaseExpires(t *testing.T) {
	t.Parallel()
	stores(t, func(t testing.TB, s store) {
		s.create(t)
		dead := s.locker(t, sqllock.Config{TTL: ttl / 2, MaxHold: time.Millisecond}) // nobody renews what it takes
		take(t, dead, "k")
		l := s.locker(t, sqllock.Config{TTL: ttl})
		l.SetPauses(backoff.Decorrelated{Min: 20 * ttl, Max: 20 * ttl})
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		lease, err := l.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		lease.Release(ctx)
	})
}

// A waiter that was not answered, and tried again, has the key. Its first attempt arrives when the
// key has been released: it is released as one that was never answered would be.
func TestLateAttemptOfAHolderIsRolledBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, other, pool := scripted(t)
		held := take(t, other, "k")
		granted := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := l.Acquire(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		testbedtest.Eventually(t, "the waiter to look", func() bool { return len(s.Sent()) > 3 })
		var late, owner string
		s.Play(func(_ int, statement string) error {
			if late == "" && strings.HasPrefix(statement, "INSERT") {
				late = statement
				return mysql.ErrInvalidConn
			}
			return nil
		}, func(_ int, statement string) error {
			if !strings.HasPrefix(statement, "UPDATE leases SET owner = ''") {
				return nil
			}
			s.Play(nil, nil)
			_, err := pool.ExecContext(t.Context(), late, "k", owner, ttl.Microseconds())
			return err
		})
		held.Release(t.Context())
		lease := <-granted
		if lease == nil || late == "" {
			t.Fatal("no attempt of the waiter failed, or all did")
		}
		owner = lease.Fence().Owner
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		released := time.Now()
		next, err := other.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(released); d > 2*ttl/3 {
			t.Errorf("the key was free only after %v; the TTL is %v", d, ttl)
		}
		next.Release(t.Context())
	})
}

// A driver that panics leaves the key to the next caller.
func TestPanicLeavesNoCaller(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, _, _ := scripted(t)
		key := rand.Text()
		s.Play(func(int, string) error { panic("in the driver") }, nil)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("there was no panic")
				}
			}()
			l.Acquire(t.Context(), key)
		}()
		s.Play(nil, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		lease, err := l.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
