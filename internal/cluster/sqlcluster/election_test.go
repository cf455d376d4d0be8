package sqlcluster_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// engines runs f on a file and on a server.
func engines(t *testing.T, f func(t testing.TB, s store)) {
	t.Helper()
	for name, open := range map[string]func(t testing.TB) store{
		"sqlite": func(t testing.TB) store {
			return store{engine: sqldb.SQLite(), address: filepath.Join(t.TempDir(), "cluster.db")}
		},
		"mariadb": func(t testing.TB) store { return store{engine: sqldb.MariaDB(), address: testbedtest.Database(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				s := open(t)
				s.create(t)
				f(t, s)
			})
		})
	}
}

// candidate is an instance with a pool of its own.
func (s store) candidate(t testing.TB, db *sql.DB, name string) *sqlcluster.Election {
	t.Helper()
	c, err := sqlcluster.New(db, s.engine, sqlcluster.Config{TTL: ttl})
	check(t, err)
	e, err := c.Election("leader", name)
	check(t, err)
	return e
}

// works writes in a transaction of the leader of term.
func works(ctx context.Context, t testing.TB, db *sql.DB, e *sqlcluster.Election, l cluster.Leader) error {
	t.Helper()
	tx, err := db.BeginTx(ctx, nil)
	check(t, err)
	defer tx.Rollback()
	if err := e.Hold(ctx, tx, l); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO works VALUES (?)", l.Name)
	check(t, err)
	return tx.Commit()
}

// A leader of a term that has been replaced, has expired or was resigned changes nothing, even if it considers its term valid.
func TestSupersededLeaderIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t testing.TB, s store) {
		db := s.open(t)
		exec(t, db, "CREATE TABLE works (name VARCHAR(10))")
		a, b := s.candidate(t, db, "a"), s.candidate(t, s.open(t), "b")
		first := clustertest.Campaign(t, a)
		check(t, works(t.Context(), t, db, a, first.Leader()))
		exec(t, db, "UPDATE cluster_leaders SET expires_at = 1") // as when the clock of the database is set forward
		if err := works(t.Context(), t, db, a, first.Leader()); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("in a term that has expired: %v", err)
		}
		second := clustertest.Campaign(t, b)
		if err := works(t.Context(), t, db, a, first.Leader()); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("of a former leader: %v", err)
		}
		other := second.Leader()
		other.Fence.Owner = first.Fence().Owner
		if err := works(t.Context(), t, db, a, other); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("of another owner with the number of the term: %v", err)
		}
		check(t, works(t.Context(), t, db, b, second.Leader()))
		check(t, second.Resign(t.Context()))
		if err := works(t.Context(), t, db, b, second.Leader()); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("after the resignation: %v", err)
		}
		var names []string
		rows, err := db.QueryContext(t.Context(), "SELECT name FROM works")
		check(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			check(t, rows.Scan(&name))
			names = append(names, name)
		}
		check(t, rows.Err())
		if got := strings.Join(names, " "); got != "a b" {
			t.Errorf("work of %s", got)
		}
		clustertest.Wait(t, "the end of the first term", func() bool { return errors.Is(first.Err(), dlock.ErrLost) })
	})
}

// While a leader has a transaction open, its term is over and another one campaigns. That one is elected only after
// the transaction has ended.
func TestNoTermBeginsDuringATransactionOfTheLast(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := store{engine: sqldb.MariaDB(), address: testbedtest.Database(t)}
		s.create(t)
		db := s.open(t)
		a, b := s.candidate(t, db, "a"), s.candidate(t, s.open(t), "b")
		first := clustertest.Campaign(t, a)
		tx, err := db.BeginTx(t.Context(), nil)
		check(t, err)
		check(t, a.Hold(t.Context(), tx, first.Leader()))
		_, err = tx.ExecContext(t.Context(), "UPDATE cluster_leaders SET expires_at = 1") // it does not last
		check(t, err)
		short, cancel := context.WithTimeout(t.Context(), 2*ttl)
		defer cancel()
		if term, err := b.Campaign(short); err == nil {
			t.Errorf("%+v is elected", term.Leader())
		}
		<-first.Done() // its renewals wait as well
		check(t, tx.Commit())
		if second := clustertest.Campaign(t, b); second.Fence().Token <= first.Fence().Token {
			t.Errorf("term %d follows term %d", second.Fence().Token, first.Fence().Token)
		}
	})
}

// Terms grow after the row was deleted, and after it was restored from a copy.
func TestTermsGrowOverALossOfTheRow(t *testing.T) {
	t.Parallel()
	engines(t, func(t testing.TB, s store) {
		db := s.open(t)
		e := s.candidate(t, db, "a")
		const ahead = "08000000000000000000" // of a clock that was far ahead
		last := uint64(0)
		for _, lose := range []string{
			"DELETE FROM cluster_leaders",
			"UPDATE cluster_leaders SET token = '00000000000000000007', expires_at = 1",
			"UPDATE cluster_leaders SET token = '" + ahead + "', expires_at = 1",
			"UPDATE cluster_leaders SET entry = 'illegible', expires_at = 1",
			"UPDATE cluster_leaders SET token = 'illegible', expires_at = 1",
		} {
			term := clustertest.Campaign(t, e)
			if term.Fence().Token <= last || term.Fence().Token > math.MaxInt64 {
				t.Errorf("term %d follows term %d", term.Fence().Token, last)
			}
			last = term.Fence().Token
			exec(t, db, lose)
			if strings.Contains(lose, ahead) {
				last = 8e18
			} else if strings.Contains(lose, "token = 'illegible'") {
				last = 0 // nothing is known of it
			}
			clustertest.Wait(t, "end of the term", func() bool { return errors.Is(term.Err(), dlock.ErrLost) })
		}
		if term := clustertest.Campaign(t, e); term.Fence().Token <= last {
			t.Errorf("term %d follows term %d", term.Fence().Token, last)
		}
	})
}

// The reply to the statement that takes the row is lost. The candidate finds that it leads.
func TestLostReplyElects(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		near := store{engine: sqldb.MariaDB(), address: testbedtest.Database(t)}
		near.create(t)
		far, proxy := near.behind(t)
		e := far.candidate(t, far.open(t), "a")
		for n, statement := range []string{"INTO cluster_leaders", "UPDATE cluster_leaders"} {
			proxy.DropReply(statement)
			start := time.Now()
			term := clustertest.Campaign(t, e)
			if proxy.Dropped() != n+1 {
				t.Errorf("%d replies were lost", proxy.Dropped())
			}
			if took := time.Since(start); took > ttl*9/10 {
				t.Errorf("elected only after %v, as when the row has expired", took)
			}
			check(t, near.candidate(t, near.open(t), "a").Hold(t.Context(), near.open(t), term.Leader()))
			check(t, term.Resign(t.Context()))
		}
	})
}

// The clock of the database is set back, so that the row seems to last. Its leader resigns, and the next is elected.
func TestClockThatIsSetBackDelaysNoResignation(t *testing.T) {
	t.Parallel()
	engines(t, func(t testing.TB, s store) {
		db := s.open(t)
		term := clustertest.Campaign(t, s.candidate(t, db, "a"))
		exec(t, db, "UPDATE cluster_leaders SET expires_at = expires_at + 3600000000")
		check(t, term.Resign(t.Context()))
		start := time.Now()
		if next := clustertest.Campaign(t, s.candidate(t, s.open(t), "b")); next.Fence().Token <= term.Fence().Token {
			t.Errorf("term %d follows term %d", next.Fence().Token, term.Fence().Token)
		}
		t.Logf("elected after %v", time.Since(start))
	})
}

// The same, after the leader and a member have died. A step of less than a TTL changes nothing.
func TestClockThatIsSetBackDelaysNoElection(t *testing.T) {
	t.Parallel()
	engines(t, func(t testing.TB, s store) {
		db := s.open(t)
		term := clustertest.Campaign(t, s.candidate(t, db, "a"))
		exec(t, db, "UPDATE cluster_leaders SET entry = 'dead', expires_at = expires_at + ?", ttl.Microseconds()/2)
		start := time.Now()
		next := clustertest.Campaign(t, s.candidate(t, s.open(t), "b"))
		if took := time.Since(start); took < ttl/2 {
			t.Errorf("elected after %v, before the end of the row", took)
		}
		exec(t, db, "UPDATE cluster_leaders SET entry = 'dead', expires_at = expires_at + 3600000000")
		last := clustertest.Campaign(t, s.candidate(t, s.open(t), "c"))
		if term.Fence().Token >= next.Fence().Token || next.Fence().Token >= last.Fence().Token {
			t.Errorf("terms %d, %d, %d", term.Fence().Token, next.Fence().Token, last.Fence().Token)
		}
		dead, err := sqlcluster.New(db, s.engine, sqlcluster.Config{TTL: ttl})
		check(t, err)
		for _, address := range []string{"first:1", "second:1"} {
			p, err := dead.Join(t.Context(), cluster.Member{Name: "m", Address: address})
			check(t, err)
			defer p.Leave(t.Context())
			exec(t, db, "UPDATE cluster_members SET incarnation = 'dead', expires_at = expires_at + 3600000000")
		}
	})
}

func TestElectionIsChecked(t *testing.T) {
	t.Parallel()
	s := store{engine: sqldb.SQLite(), address: filepath.Join(t.TempDir(), "cluster.db")}
	c, err := sqlcluster.New(s.open(t), s.engine, sqlcluster.Config{})
	check(t, err)
	for _, bad := range [][2]string{{"", "a"}, {strings.Repeat("k", 129), "a"}, {"k", ""}, {"k", "a\n"}} {
		if _, err := c.Election(bad[0], bad[1]); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
