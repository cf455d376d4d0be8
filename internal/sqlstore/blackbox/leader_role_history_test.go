package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// Leaders that do not see each other continue after others have been elected. The database has recorded the work of one
// term after the other.
func TestHistoryOfRoles(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, db := open(t, url, "one"), rawDB(t, url)
		record(t, db)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testbedtest.Size(4, 40))*time.Minute)
		defer cancel()
		var (
			elections, refused atomic.Int64
			workers            sync.WaitGroup
		)
		want := int64(testbedtest.Size(60, 1000))
		for range 4 {
			workers.Go(func() {
				for n := elections.Add(1); n <= want; n = elections.Add(1) {
					number := uint64(n % 40) // the service loses its data now and then
					token, err := s.ClaimRole(ctx, role, newTerm(number, fmt.Sprint("leader-", n)))
					for err == nil {
						_, err = s.PurgeAnswers(ctx, token, time.Hour, 1)
						if elections.Load() > want {
							break // nobody else is elected
						}
					}
					if errors.Is(err, dlock.ErrFenced) {
						refused.Add(1)
					} else if err != nil && !errors.Is(err, stock.ErrBusy) {
						t.Error(err)
						return
					}
				}
			})
			// Somebody has to claim the role from those that hold it.
			workers.Go(func() {
				for n := elections.Add(1); n <= want; n = elections.Add(1) {
					if _, err := s.ClaimRole(ctx, role, newTerm(uint64(n%40), fmt.Sprint("leader-", n))); err != nil && !errors.Is(err, stock.ErrBusy) {
						t.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		terms, works := history(t, db)
		t.Logf("%d terms, %d times at work, %d leaders were refused", terms, works, refused.Load())
		if terms < int(want)/2 || refused.Load() == 0 {
			t.Errorf("%d terms of %d, %d refused", terms, want, refused.Load())
		}
	})
}

// record has the database write down each transaction of a leader.
func record(t *testing.T, db *sql.DB) {
	t.Helper()
	key := "id INTEGER PRIMARY KEY AUTOINCREMENT"
	if _, err := db.ExecContext(t.Context(), "SELECT sqlite_version()"); err != nil {
		key = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	}
	for _, statement := range []string{
		"CREATE TABLE history (" + key + ", term BIGINT NOT NULL, owner VARCHAR(255) NOT NULL)",
		"CREATE TRIGGER history AFTER UPDATE ON terms FOR EACH ROW BEGIN INSERT INTO history (term, owner) VALUES (NEW.term, NEW.owner); END",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// history checks that each term has one owner, and that none comes back after a later one.
func history(t *testing.T, db *sql.DB) (terms, works int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT term, owner FROM history ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var last struct {
		term  int64
		owner string
	}
	for rows.Next() {
		now := last
		if err := rows.Scan(&now.term, &now.owner); err != nil {
			t.Fatal(err)
		}
		works++
		switch {
		case now.term < last.term, now.term == last.term && now.owner != last.owner:
			t.Errorf("term %d of %s is at work after term %d of %s", now.term, now.owner, last.term, last.owner)
		case now.term > last.term:
			terms++
		}
		last = now
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return terms, works
}
