package sqllock_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// stores runs a test on both engines.
func stores(t *testing.T, f func(t testing.TB, s store)) {
	t.Helper()
	t.Run("mariadb", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, mariaDB(testbedtest.Database(t)))
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, sqlite(filepath.Join(t.TempDir(), "locks.db")))
		})
	})
}

func take(t testing.TB, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	return lease
}

// Keys are bytes: neither blanks at their end nor upper case are lost in the table.
func TestKeysAreBytes(t *testing.T) {
	t.Parallel()
	stores(t, func(t testing.TB, s store) {
		s.create(t)
		l := s.locker(t, sqllock.Config{TTL: ttl})
		long := strings.Repeat("k", 254)
		for _, key := range []string{"k", "k ", "K", "\x00k", "ключ", long + "1", long + "2"} {
			defer take(t, l, key).Release(t.Context())
		}
		for _, key := range []string{"", long + "12"} {
			if _, err := l.TryAcquire(t.Context(), key); err == nil || errors.Is(err, dlock.ErrHeld) {
				t.Errorf("a key of %d bytes: %v", len(key), err)
			}
		}
	})
}

// Each operation costs as many statements as documented.
func TestStatements(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, other, _ := scriptedFor(t, time.Hour) // nothing is renewed meanwhile
		count := func(what string, want int, f func()) {
			t.Helper()
			s.Play(nil, nil)
			f()
			if sent := s.Sent(); len(sent) != want {
				t.Errorf("%s: %d statements, want %d: %q", what, len(sent), want, sent)
			}
		}
		var lease *dlock.Lease
		count("TryAcquire", 1, func() { lease = take(t, l, "k") })
		count("Release", 1, func() { lease.Release(t.Context()) })
		count("Acquire", 1, func() { lease, _ = l.Acquire(t.Context(), "k") })
		lease.Release(t.Context())
		lease = take(t, other, "k")
		count("TryAcquire of a key that is held", 1, func() { l.TryAcquire(t.Context(), "k") })
		lease.Release(t.Context())
	})
}

// All leases of a process are renewed by one statement, and one that is lost harms no other.
func TestRenewalsShareAStatement(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, s, _, pool := scripted(t)
		var leases []*dlock.Lease
		for i := range 50 {
			leases = append(leases, take(t, l, fmt.Sprint("key-", i)))
		}
		start := time.Now()
		s.Play(nil, nil)
		exec(t, pool, "UPDATE leases SET expires_at = 1 WHERE name = 'key-7'")
		select {
		case <-leases[7].Done():
		case <-time.After(2 * ttl):
			t.Error("the holder is not notified of the loss")
		}
		renewals := 0
		for _, statement := range s.Sent() {
			if strings.HasPrefix(statement, "UPDATE") {
				renewals++
			}
		}
		// They were not all taken at the same time, and those that are due within TTL/30 are
		// renewed together.
		if most := 2 + int(time.Since(start)/(ttl/30)); renewals == 0 || renewals > most {
			t.Errorf("%d statements renewed 50 leases, want %d at most", renewals, most)
		}
		for i, lease := range leases {
			if i != 7 && lease.Err() != nil {
				t.Errorf("lease %d: %v", i, lease.Err())
			}
			lease.Release(t.Context())
		}
	})
}

// No statement waits for a transaction on another row, however small the table. This holds at the isolation level that
// locks every row that it reads.
func TestStatementsLockOnlyTheirRows(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := mariaDB(testbedtest.Database(t))
		pool := s.create(t)
		s.change = func(c *mysql.Config) { c.Params[testbedtest.IsolationVariable(t, s.address)] = "'REPEATABLE-READ'" }
		l := s.locker(t, sqllock.Config{TTL: ttl})
		for _, key := range []string{"a", "b", "c"} {
			take(t, l, key).Release(t.Context())
		}
		tx, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE leases SET forced = 0, owner = 'x' WHERE name = 'b'"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		a, c := take(t, l, "a"), take(t, l, "c")
		<-time.After(ttl + ttl/10) // they live by their renewals, which name both
		if a.Err() != nil || c.Err() != nil {
			t.Errorf("leases that were not renewed: %v, %v", a.Err(), c.Err())
		}
		if err := errors.Join(a.Release(t.Context()), c.Release(t.Context())); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 2*ttl {
			t.Errorf("it took %v alongside a locked row", d)
		}
	})
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
