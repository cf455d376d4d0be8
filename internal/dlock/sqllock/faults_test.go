package sqllock_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A transient error is retried; any other error is returned at once.
func TestErrors(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, _, _ := scripted(t)
		for _, number := range []uint16{1205, 1213, 1020} {
			s.Play(func(n int, _ string) error {
				if n < 3 {
					return refused(number)
				}
				return nil
			}, nil)
			take(t, l, "k").Release(t.Context())
		}
		for _, number := range []uint16{1064, 1146, 1290} {
			s.Play(func(int, string) error { return refused(number) }, nil)
			for _, acquire := range []func(context.Context, string) (*dlock.Lease, error){l.TryAcquire, l.Acquire} {
				_, err := acquire(t.Context(), "k")
				e, ok := errors.AsType[*mysql.MySQLError](err)
				if !ok || e.Number != number || errors.Is(err, dlock.ErrUncertain) || errors.Is(err, dlock.ErrHeld) {
					t.Errorf("%v, want error %d and nothing else", err, number)
				}
			}
		}
		s.Play(func(int, string) error { return refused(1047) }, nil) // a server that accepts no work now is asked again until the timeout
		_, err := l.TryAcquire(t.Context(), "k")
		if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1047 || errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("%v, want error 1047 and nothing else", err)
		}
		s.Play(nil, nil)
		take(t, l, "k").Release(t.Context())
	})
}

// The last attempt of many gets no connection until the timeout. The refusals before it are the reason.
func TestRefusalIsTheReason(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		st, s := mariaDB(testbedtest.Database(t)), new(testbedtest.SQLScript)
		st.create(t)
		st.wrap = s.Wrap
		pool := st.open(t)
		pool.SetMaxOpenConns(1)
		st.pools = []*sql.DB{pool}
		l := st.locker(t, sqllock.Config{TTL: ttl})
		take(t, l, "k").Release(t.Context()) // so that the connection is open
		taken, waits := make(chan *sql.Conn, 1), pool.Stats().WaitCount
		s.Play(func(int, string) error { // the first: the only connection goes to the test next
			go func() {
				conn, err := pool.Conn(t.Context())
				if err != nil {
					t.Error(err)
				}
				taken <- conn
			}()
			testbedtest.Eventually(t, "a wait for the connection", func() bool { return pool.Stats().WaitCount > waits })
			return refused(1047)
		}, nil)
		_, err := l.TryAcquire(t.Context(), "k")
		sent := len(s.Sent())
		s.Play(nil, nil)
		if sent > 0 {
			if conn := <-taken; conn != nil {
				conn.Close()
			}
		}
		if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1047 || errors.Is(err, dlock.ErrUncertain) || sent != 1 {
			t.Errorf("%v after %d statements, want error 1047 after one", err, sent)
		}
		take(t, l, "k").Release(t.Context())
	})
}

// A renewal whose answer is lost is no loss, and is repeated.
func TestRenewalWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, _, _ := scripted(t)
		lease := take(t, l, "k")
		s.Play(nil, func(n int, _ string) error {
			if n%2 == 0 {
				return mysql.ErrInvalidConn
			}
			return nil
		})
		testbedtest.Eventually(t, "renewals", func() bool { return len(s.Sent()) >= 4 })
		s.Play(nil, nil)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
	})
}

// A release that did not get through is made up for long before the TTL ends.
func TestFailedReleaseIsRetried(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, other, _ := scripted(t)
		lease := take(t, l, "k")
		s.Play(func(n int, _ string) error {
			if n < 2 { // the release, and the first attempt to make up for it
				return mysql.ErrInvalidConn
			}
			return nil
		}, nil)
		start := time.Now()
		if err := lease.Release(t.Context()); err == nil || errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v, want the error of the network", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		next, err := other.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 2*ttl/3 {
			t.Errorf("the key was free only after %v; the TTL is %v", d, ttl)
		}
		next.Release(ctx)
	})
}

// TestServerThatStalls pauses the server beyond the TTL. The holder must end its work in time, and callers must
// get an answer in time.
func TestServerThatStalls(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const ttl = 2 * ttl // its margin of a tenth is enough for a timer that is late
		server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
		s := mariaDB(server.URL())
		s.create(t)
		l, key := s.locker(t, sqllock.Config{TTL: ttl}), rand.Text()
		lease := take(t, l, key)
		ended := make(chan time.Time, 1)
		lease.OnEnd(func(error) { ended <- time.Now() })
		const waiters = 20
		results := make(chan error, waiters)
		for range waiters {
			go func() {
				_, err := l.Acquire(t.Context(), key)
				results <- err
			}()
		}
		start := time.Now()
		harm(t, server.Pause)
		ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
		defer cancel()
		if _, err := l.Acquire(ctx, rand.Text()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire = %v, want the end of the context", err)
		}
		if _, err := l.TryAcquire(t.Context(), key); err == nil || errors.Is(err, dlock.ErrHeld) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire without a deadline = %v, want an error of its own", err)
		}
		if d := time.Since(start); d > ttl {
			t.Errorf("two attempts on a silent server took %v", d)
		}
		select {
		case at := <-ended:
			if d := at.Sub(start); d > ttl {
				t.Errorf("the lease ended after %v, its TTL is %v", d, ttl)
			}
		case <-time.After(2 * ttl):
			t.Fatal("the holder is not notified of the loss")
		}
		end := time.After(3 * ttl)
		for range waiters { // all at about the same time, and not one by one
			select {
			case err := <-results:
				if err == nil || errors.Is(err, dlock.ErrHeld) {
					t.Errorf("a waiter: %v", err)
				}
			case <-end:
				t.Fatal("who waits is not notified that the server is unavailable")
			}
		}
		harm(t, server.Resume)
		testbedtest.Eventually(t, "the lock", func() bool {
			next, err := l.TryAcquire(t.Context(), key)
			return err == nil && next.Release(t.Context()) == nil
		})
	})
}

// The answer to an acquisition comes late, and no renewal gets through: the database has
// counted from the start.
func TestValidityCountsFromBeforeTheStatement(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const ttl = 2 * ttl // its margin of a tenth is enough for a timer that is late
		l, s, _, _ := scriptedFor(t, ttl)
		take(t, l, "other").Release(t.Context()) // connected
		s.Play(func(n int, _ string) error {
			if n > 0 {
				return refused(1290)
			}
			return nil
		}, func(int, string) error {
			<-time.After(ttl / 4)
			return nil
		})
		start := time.Now()
		lease := take(t, l, "k")
		ended := make(chan time.Time, 1)
		lease.OnEnd(func(error) { ended <- time.Now() })
		select {
		case at := <-ended:
			if d := at.Sub(start); d > ttl {
				t.Errorf("the lease ended %v after the statement was sent, its TTL is %v", d, ttl)
			}
		case <-time.After(2 * ttl):
			t.Fatal("the lease continues")
		}
	})
}
