package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
)

// meaning is what the functions say of one error.
type meaning struct{ transient, broken, duplicate, unchanged, unable bool }

func meaningOf(err error) meaning {
	return meaning{sqldb.Transient(err), sqldb.Broken(err), sqldb.Is(err, sqldb.Duplicate), sqldb.Unchanged(err), sqldb.Unable(err)}
}

func TestMeanings(t *testing.T) {
	server := func(number uint16) error { return &mysql.MySQLError{Number: number} }
	for _, c := range []struct {
		err  error
		want meaning
	}{
		{nil, meaning{}},
		{errors.New("anything"), meaning{}},
		{sql.ErrNoRows, meaning{}},
		{context.DeadlineExceeded, meaning{broken: true}}, // it is a net.Error, and the statement may be on its way
		{server(1064), meaning{unchanged: true}},
		{server(1205), meaning{transient: true, unchanged: true}},
		{server(1213), meaning{transient: true, unchanged: true}},
		{server(1020), meaning{transient: true, unchanged: true}},
		{server(1062), meaning{duplicate: true, unchanged: true}},
		{server(1040), meaning{broken: true, unchanged: true}},
		{server(1290), meaning{broken: true, unchanged: true}},
		{server(1792), meaning{broken: true, unchanged: true}},
		{server(3781), meaning{broken: true, unchanged: true}},
		{server(1836), meaning{broken: true, unchanged: true}},
		{server(1053), meaning{broken: true}},
		{server(1317), meaning{broken: true}},
		{server(4031), meaning{broken: true}},
		{server(1180), meaning{broken: true}},
		{server(2003), meaning{broken: true}},
		{server(3100), meaning{broken: true}},
		{server(1665), meaning{unchanged: true, unable: true}},
		{server(1114), meaning{unchanged: true, unable: true}},
		{driver.ErrBadConn, meaning{broken: true}},
		{mysql.ErrInvalidConn, meaning{broken: true}},
		{io.ErrUnexpectedEOF, meaning{broken: true}},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, meaning{broken: true}},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if got := meaningOf(err); got != c.want {
				t.Errorf("%v: %+v, want %+v", err, got, c.want)
			}
			if c.err == nil {
				break
			}
		}
	}
}

func TestMeaningsOfSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "errors.db")
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+name+"?_txlock=immediate&_pragma=busy_timeout(1)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db, other := open(file), open(file)
	exec := func(db *sql.DB, statement string) error {
		_, err := db.ExecContext(t.Context(), statement)
		return err
	}
	if err := errors.Join(exec(db, "CREATE TABLE t (n INTEGER PRIMARY KEY, u TEXT UNIQUE)"), exec(db, "INSERT INTO t VALUES (1, 'a')")); err != nil {
		t.Fatal(err)
	}
	check := func(err error, want meaning) {
		t.Helper()
		if got := meaningOf(err); err == nil || got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
	check(exec(db, "INSERT INTO t VALUES (1, 'b')"), meaning{duplicate: true, unchanged: true})
	check(exec(db, "INSERT INTO t VALUES (2, 'a')"), meaning{duplicate: true, unchanged: true})
	check(exec(db, "INSERT INTO nowhere VALUES (2)"), meaning{unchanged: true})
	check(exec(open(filepath.Join(t.TempDir(), "no", "file.db")), "SELECT 1"), meaning{broken: true, unchanged: true})
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	check(exec(db, "INSERT INTO t VALUES (2, 'b')"), meaning{transient: true, unchanged: true})
}
