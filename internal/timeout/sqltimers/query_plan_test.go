package sqltimers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/timeouttest"
)

const kind = "order.expire"

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("t%07d", i)
	}
	return ids
}

// insert stores timers that are a millisecond apart, the first due at a moment.
func insert(tb testing.TB, s timeout.Store, due time.Time, apart time.Duration, ids []string) {
	tb.Helper()
	timers := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		timers[i] = timeout.Timer{Kind: kind, ID: id, Due: due.Add(time.Duration(i) * apart)}
	}
	if err := s.Insert(tb.Context(), nil, timeout.Base, "", timers); err != nil {
		tb.Fatal(err)
	}
}

// The server reads few more rows than a page has, in a table of which the page is a small part, and sorts none.
func TestPagesCostWhatIsInThem(t *testing.T) {
	t.Parallel()
	const size, limit = 20_000, 50
	db := openMariaDB(t, testbedtest.Database(t), nil)
	c := client(t, db, sqldb.MariaDB())
	db.SetMaxOpenConns(1) // the counters are those of a session
	ctx := t.Context()
	now, err := c.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ids := numbered(size)
	insert(t, c, now.Add(-time.Hour), time.Millisecond, ids)
	insert(t, c, now.Add(time.Hour), 0, []string{"u1", "u2"})
	one := func(id string) timeout.Row {
		rows, _, err := c.Load(ctx, kind, []string{id})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0]
	}
	middle := one(ids[size/2])
	list := func(f timeout.Filter) func() (int, error) {
		f.Limit = limit
		return func() (int, error) {
			rows, err := c.List(ctx, f)
			return len(rows), err
		}
	}
	for _, test := range []struct {
		name  string
		bound int // rows read
		do    func() (rows int, err error)
	}{
		{"first page", 2 * limit, list(timeout.Filter{State: timeout.Open})},
		{"middle page", 2 * limit, list(timeout.Filter{State: timeout.Open, After: middle})},
		{"middle page of all states", 6 * limit, list(timeout.Filter{After: middle})}, // merged in a temporary table
		{"middle page of a kind until a moment", 2 * limit, list(timeout.Filter{Kind: kind, State: timeout.Open, After: middle, Until: now})},
		{"sweep", 6 * limit, func() (int, error) { // the update reads them again
			rows, err := c.ClaimOverdue(ctx, kind, timeout.Base, now, now.Add(time.Hour), limit)
			return len(rows), err
		}},
		{"delete", 6 * limit, func() (int, error) { return c.Delete(ctx, nil, kind, ids[:limit], nil) }},
		{"load", 2 * limit, func() (int, error) {
			rows, _, err := c.Load(ctx, kind, ids[limit:2*limit])
			return len(rows), err
		}},
		{"nothing to reassign", limit, func() (int, error) {
			n, err := c.Reassign(ctx, time.Minute, limit)
			return n + limit, err
		}},
	} {
		read, sorted := counters(ctx, t, db)
		rows, err := test.do()
		if err != nil || rows != limit {
			t.Errorf("%s: %d rows, %v; want %d", test.name, rows, err, limit)
		}
		readNow, sortedNow := counters(ctx, t, db)
		t.Logf("%s: %d rows read", test.name, readNow-read)
		if n := readNow - read; n > test.bound {
			t.Errorf("%s: the server read %d rows for %d, want at most %d", test.name, n, rows, test.bound)
		}
		if n := sortedNow - sorted; n > 2*limit {
			t.Errorf("%s: the server sorted %d rows", test.name, n)
		}
	}
}

// TestPagesOfOneMoment costs no more in the last page than in the first: a flash sale makes
// many timers due in one millisecond.
func TestPagesOfOneMoment(t *testing.T) {
	t.Parallel()
	const size, limit = 20_000, 50
	db := openMariaDB(t, testbedtest.Database(t), nil)
	c := client(t, db, sqldb.MariaDB())
	db.SetMaxOpenConns(1)
	due := time.UnixMilli(2e12)
	ids := numbered(size)
	insert(t, c, due, 0, ids)
	after := timeout.Row{Timer: timeout.Timer{Kind: kind, ID: ids[size-limit-1]}, Next: due}
	read, _ := counters(t.Context(), t, db)
	rows, err := c.List(t.Context(), timeout.Filter{State: timeout.Open, After: after, Limit: 2 * limit})
	if err != nil || len(rows) != limit {
		t.Fatalf("%d rows, %v; want %d", len(rows), err, limit)
	}
	if now, _ := counters(t.Context(), t, db); now-read > 4*limit {
		t.Errorf("the server read %d rows for the last %d", now-read, limit)
	}
}

// counters returns how many rows the session has read and sorted.
func counters(ctx context.Context, t *testing.T, db *sql.DB) (read, sorted int) {
	t.Helper()
	rows, err := db.QueryContext(ctx, "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name = 'Sort_rows'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "Handler_read") {
			read += n
		} else {
			sorted += n
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return read, sorted
}

// Statements lock only their rows: none waits for a transaction that holds other rows.
func TestStatementsLockOnlyTheirRows(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 12, 300} {
		t.Run(fmt.Sprintf("%d rows", size), func(t *testing.T) {
			t.Parallel()
			db := openMariaDB(t, testbedtest.Database(t), func(c *mysql.Config) { c.Params["innodb_lock_wait_timeout"] = "1" })
			lockOnlyTheirRows(t.Context(), t, client(t, db, sqldb.MariaDB()), size)
		})
	}
}

func lockOnlyTheirRows(ctx context.Context, t *testing.T, c timeouttest.StoreClient, size int) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	all := numbered(size + 6)
	insert(t, c, past, 0, all)
	// The first, the last and some in the middle belong to somebody else.
	held, ids := append([]string{all[0], all[len(all)-1]}, all[2:6]...), append([]string{all[1]}, all[6:len(all)-1]...)
	later := make([]timeout.Later, len(ids))
	for i, id := range ids {
		later[i] = timeout.Later{ID: id, Due: time.Now(), At: past, Attempt: 1}
	}
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}()
	if n, err := c.Delete(ctx, tx, kind, held[:3], nil); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for _, id := range held[3:] {
		if _, err := c.Move(ctx, tx, kind, id, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	_, moveErr := c.Move(ctx, nil, kind, ids[0], past)
	delayErr := c.Delay(ctx, kind, later)
	deadErr := c.MarkDead(ctx, kind, later)
	redriven, redriveErr := c.Redrive(ctx, kind, ids)
	rows := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		rows[i] = timeout.Timer{Kind: kind, ID: id, Due: past}
	}
	insertErr := c.Insert(ctx, nil, "gone", "", rows)
	reassigned, reassignErr := c.Reassign(ctx, time.Minute, 5000)
	claimed, claimErr := c.ClaimOverdue(ctx, kind, timeout.Base, time.Now(), time.Now(), 5000)
	n, deleteErr := c.Delete(ctx, nil, kind, ids, nil)
	if err := errors.Join(moveErr, delayErr, deadErr, redriveErr, insertErr, reassignErr, claimErr, deleteErr); err != nil {
		t.Error(err)
	}
	if len(redriven) != size || reassigned != size || len(claimed) != size || n != size {
		t.Errorf("redriven %d, reassigned %d, claimed %d, deleted %d; want %d each", len(redriven), reassigned, len(claimed), n, size)
	}
}
