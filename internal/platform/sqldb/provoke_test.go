package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// provocation is a way to have a server return an error, and the class of that.
type provocation struct {
	want    sqldb.Class
	provoke func() error
}

// The server itself gives each error of MariaDB, or of MySQL, that docs/reference/errors-of-stores.md marks so.
func TestErrorsOfMariaDB(t *testing.T) {
	t.Parallel()
	p := provokers(t)
	errs := map[uint16]provocation{
		1054: {sqldb.NoSchema, p.statement("SELECT z FROM t")},
		1060: {sqldb.Repeated, p.statement("ALTER TABLE t ADD COLUMN n INT")},
		1061: {sqldb.Repeated, p.statement("CREATE INDEX byn ON t (n)")},
		1062: {sqldb.Duplicate, p.statement("INSERT INTO t VALUES (1, 1)")},
		1064: {sqldb.None, p.statement("SELECT FROM")},
		1091: {sqldb.Repeated, p.statement("ALTER TABLE t DROP COLUMN z")},
		1114: {sqldb.Full, p.statement("INSERT INTO small SELECT REPEAT('x', 200) FROM information_schema.columns")},
		1146: {sqldb.NoSchema, p.statement("SELECT 1 FROM z")},
		1317: {sqldb.Lost, func() error { return p.locked("UPDATE t SET n = 2 WHERE id = 1", p.kill("KILL QUERY")) }},
		1665: {sqldb.Denied, p.statement("SET SESSION binlog_format = STATEMENT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "UPDATE t SET n = n + 1")},
		1792: {sqldb.ReadOnly, p.statement("START TRANSACTION READ ONLY", "UPDATE t SET n = 2")},
		1213: {sqldb.Conflict, p.deadlock},
		1044: {sqldb.Denied, p.as("guest", "CREATE DATABASE other")},
		1045: {sqldb.Denied, p.as("nobody", "SELECT 1")},
		1142: {sqldb.Denied, p.as("guest", "UPDATE t SET n = 2")},
		1143: {sqldb.Denied, p.as("guest", "SELECT n FROM t")},
		1227: {sqldb.Denied, p.as("guest", "SET GLOBAL read_only = 1")},
		1370: {sqldb.Denied, p.as("guest", "CALL secret()")},
		1226: {sqldb.Starting, p.crowd("single", 2)},
		1203: {sqldb.Starting, p.crowd("guest", 6)},
		1040: {sqldb.Starting, p.crowd("free", 30)},
		1290: {sqldb.ReadOnly, p.readOnly},
	}
	const again = "ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)"
	own := map[uint16]provocation{ // of MariaDB
		1205: {sqldb.RowLocked, func() error { return p.locked("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", nil) }},
		1826: {sqldb.Repeated, p.statement(again)},
		1927: {sqldb.Lost, p.statement("KILL CONNECTION_ID()")},
		1969: {sqldb.Late, p.statement("SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(9)")},
		1020: {sqldb.Conflict, func() error {
			return p.crossed("SET innodb_snapshot_isolation = ON", "UPDATE t SET n = n + 1 WHERE id = 1")
		}},
	}
	var last map[uint16]provocation
	if isMySQL(t, p.server) {
		last = map[uint16]provocation{
			1053: {sqldb.Stopping, func() error { return p.locked("UPDATE t SET n = 2 WHERE id = 1", p.stop) }},
		}
		own = map[uint16]provocation{
			3572: {sqldb.RowLocked, func() error { return p.locked("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", nil) }},
			1205: {sqldb.RowLocked, func() error {
				return p.locked("SELECT /*+ SET_VAR(innodb_lock_wait_timeout = 1) */ * FROM t WHERE id = 1 FOR UPDATE", nil)
			}},
			3822: {sqldb.Repeated, p.statement(again)},
			4031: {sqldb.Lost, p.idle},
			3024: {sqldb.Late, p.statement("SELECT /*+ MAX_EXECUTION_TIME(10) */ COUNT(*) FROM information_schema.columns a, information_schema.columns b")},
		}
	}
	maps.Copy(errs, own)
	for _, errs := range []map[uint16]provocation{errs, last} {
		for number, c := range errs {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				err := c.provoke()
				e, ok := errors.AsType[*mysql.MySQLError](err)
				if !ok || e.Number != number || sqldb.Classify(err) != c.want {
					t.Errorf("%v of class %v, want %d of class %v", err, sqldb.Classify(err), number, c.want)
				}
			})
		}
	}
}

// provoker provokes errors of a server that has tables t and small.
type provoker struct {
	t      *testing.T
	server *testbed.MariaDB
	db     *sql.DB // of a user who may do everything
}

func provokers(t *testing.T) provoker {
	t.Helper()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{
		"log_bin": "log", "binlog_format": "ROW", "max_heap_table_size": "16384", "max_user_connections": "5", "max_connections": "20",
	}})
	p := provoker{t, server, testbedtest.OpenSQL(t, server.URL())}
	for _, statement := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY byn (n), CONSTRAINT positive CHECK (n > 0))", "INSERT INTO t VALUES (1, 1), (2, 2)",
		"CREATE TABLE small (x VARCHAR(200)) ENGINE=MEMORY", "CREATE PROCEDURE secret() SELECT 1",
		"CREATE USER guest", "GRANT SELECT (id) ON shop.t TO guest",
		"CREATE USER single WITH MAX_USER_CONNECTIONS 1", "GRANT SELECT ON shop.* TO single",
		"CREATE USER free WITH MAX_USER_CONNECTIONS 100", "GRANT SELECT, UPDATE ON shop.* TO free",
	} {
		if _, err := p.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	return p
}

// statement returns the error of the last of statements, which one session of its own executes.
func (p provoker) statement(statements ...string) func() error {
	return p.as("root", statements...)
}

// as is statement for a user.
func (p provoker) as(user string, statements ...string) func() error {
	return func() (err error) {
		db := p.connect(user)
		defer db.Close()
		conn, err := db.Conn(p.t.Context())
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if err != nil {
				return fmt.Errorf("before %s: %s", statement, err.Error())
			}
			_, err = conn.ExecContext(p.t.Context(), statement)
		}
		return errors.Join(err, conn.Close())
	}
}

func (p provoker) connect(user string) *sql.DB {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.Logger = user, "tcp", p.server.Addr(), testbed.DefaultDatabase, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// locked returns the error of a statement that needs the row that another transaction has. meanwhile gets the number of
// the waiting session, if it is not nil.
func (p provoker) locked(statement string, meanwhile func(session int64)) error {
	ctx := p.t.Context()
	holder, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer holder.Rollback()
	if _, err := holder.ExecContext(ctx, "UPDATE t SET n = 3 WHERE id = 1"); err != nil {
		return err
	}
	conn, session, err := p.session()
	if err != nil {
		return err
	}
	defer conn.Close()
	if meanwhile != nil {
		go meanwhile(session)
	}
	_, err = conn.ExecContext(ctx, statement)
	return err
}

// session returns a session and its number.
func (p provoker) session() (conn *sql.Conn, number int64, err error) {
	if conn, err = p.db.Conn(p.t.Context()); err != nil {
		return nil, 0, err
	}
	if err := conn.QueryRowContext(p.t.Context(), "SELECT CONNECTION_ID()").Scan(&number); err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, number, nil
}

// kill returns a function that ends the wait of a session for a row.
func (p provoker) kill(command string) func(session int64) {
	return func(session int64) {
		p.waits(session)
		if _, err := p.db.ExecContext(p.t.Context(), fmt.Sprintf("%s %d", command, session)); err != nil {
			p.t.Error(err)
		}
	}
}

// stop stops the server when a session waits for a row. The answer to SHUTDOWN may be lost.
func (p provoker) stop(session int64) {
	p.waits(session)
	_, _ = p.db.ExecContext(p.t.Context(), "SHUTDOWN")
}

// waits returns when a session waits for a row.
func (p provoker) waits(session int64) {
	p.await("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id = ?", session)
}

// await returns when the query counts something. The server reads its transactions again only for a query that comes
// 100 ms after the last one.
func (p provoker) await(query string, args ...any) {
	for n := 0; n == 0 && p.t.Context().Err() == nil; <-time.After(150 * time.Millisecond) {
		if err := p.db.QueryRowContext(p.t.Context(), query, args...).Scan(&n); err != nil {
			p.t.Error(err)
			return
		}
	}
}

// idle returns the error of a statement in a session that the server has ended, because it was idle for a second.
func (p provoker) idle() error {
	ctx := p.t.Context()
	conn, session, err := p.session()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SET wait_timeout = 1"); err != nil {
		return err
	}
	p.await("SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = ?", session)
	_, err = conn.ExecContext(ctx, "SELECT 1")
	return err
}

// crossed returns the error of a statement after another transaction has written to the rows that its own has read.
func (p provoker) crossed(setting, statement string) error {
	ctx := p.t.Context()
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	exec := func(statement string) {
		if _, failed := conn.ExecContext(ctx, statement); err == nil {
			err = failed
		}
	}
	exec(setting)
	exec("START TRANSACTION WITH CONSISTENT SNAPSHOT")
	if _, failed := p.db.ExecContext(ctx, "UPDATE t SET n = n + 1"); failed != nil {
		return failed
	}
	exec(statement)
	if _, failed := conn.ExecContext(ctx, "ROLLBACK"); failed != nil {
		return failed
	}
	return err
}

// deadlock has two transactions lock two rows in opposite orders.
func (p provoker) deadlock() error {
	ctx, errs := p.t.Context(), make(chan error, 1)
	var tx [2]*sql.Tx
	for i := range tx {
		var err error
		if tx[i], err = p.db.BeginTx(ctx, nil); err != nil {
			return err
		}
		defer tx[i].Rollback()
		if _, err := tx[i].ExecContext(ctx, "UPDATE t SET n = 3 WHERE id = ?", i+1); err != nil {
			return err
		}
	}
	go func() {
		_, err := tx[0].ExecContext(ctx, "UPDATE t SET n = 3 WHERE id = 2")
		errs <- err
	}()
	p.await("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
	_, err := tx[1].ExecContext(ctx, "UPDATE t SET n = 3 WHERE id = 1")
	if err != nil {
		return err
	}
	return <-errs
}

// crowd returns the error of the last of n sessions of a user.
func (p provoker) crowd(user string, n int) func() error {
	return func() (err error) {
		// The next error is of another kind once the server knows that all are gone.
		defer p.await("SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE user = ?", user)
		db := p.connect(user)
		defer db.Close()
		for range n {
			var conn *sql.Conn
			if conn, err = db.Conn(p.t.Context()); err != nil {
				return err
			}
			defer conn.Close()
		}
		return nil
	}
}

// readOnly writes to a server that was demoted.
func (p provoker) readOnly() error {
	if _, err := p.db.ExecContext(p.t.Context(), "SET GLOBAL read_only = 1"); err != nil {
		return err
	}
	defer func() {
		if _, err := p.db.ExecContext(p.t.Context(), "SET GLOBAL read_only = 0"); err != nil {
			p.t.Error(err)
		}
	}()
	return p.as("free", "UPDATE t SET n = 2")()
}

// SQLite itself gives each of its errors that docs/reference/errors-of-stores.md marks so.
func TestErrorsOfSQLite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "errors.db")
	open := func(name, query string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+name+"?_txlock=immediate&_pragma=busy_timeout(1)&"+query)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open(file, "")
	exec := func(db *sql.DB, statement string) error {
		_, err := db.ExecContext(t.Context(), statement)
		return err
	}
	if err := errors.Join(exec(db, "CREATE TABLE t (n TEXT PRIMARY KEY, u TEXT UNIQUE)"), exec(db, "INSERT INTO t VALUES (1, 'a')")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code    int
		want    sqldb.Class
		provoke func() error
	}{
		"no table":       {1, sqldb.NoSchema, func() error { return exec(db, "INSERT INTO nowhere VALUES (2)") }},
		"no column":      {1, sqldb.NoSchema, func() error { return exec(db, "SELECT z FROM t") }},
		"nor there":      {1, sqldb.NoSchema, func() error { return exec(db, "INSERT INTO t (z) VALUES (1)") }},
		"column added":   {1, sqldb.Repeated, func() error { return exec(db, "ALTER TABLE t ADD COLUMN u TEXT") }},
		"column dropped": {1, sqldb.Repeated, func() error { return exec(db, "ALTER TABLE t DROP COLUMN z") }},
		"a syntax error": {1, sqldb.None, func() error { return exec(db, "SELECT FROM") }},
		"primary key":    {1555, sqldb.Duplicate, func() error { return exec(db, "INSERT INTO t VALUES (1, 'b')") }},
		"unique":         {2067, sqldb.Duplicate, func() error { return exec(db, "INSERT INTO t VALUES (2, 'a')") }},
		"read-only":      {8, sqldb.Denied, func() error { return exec(open(file, "mode=ro"), "INSERT INTO t VALUES (3, 'c')") }},
		"full":           {13, sqldb.Full, func() error { return exec(open(file, "_pragma=max_page_count(1)"), "CREATE TABLE large (n)") }},
		"no such folder": {14, sqldb.Starting, func() error { return exec(open(filepath.Join(t.TempDir(), "no", "file.db"), ""), "SELECT 1") }},
		"interrupted": {9, sqldb.Lost, func() error {
			conn, err := db.Conn(t.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // long before the last row
			defer cancel()
			_, err = conn.ExecContext(ctx, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 1000000000) SELECT COUNT(*) FROM r")
			return err
		}},
		"a busy file": {5, sqldb.Conflict, func() error {
			tx, err := open(file, "").BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			return exec(db, "INSERT INTO t VALUES (2, 'b')")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.provoke()
			e, ok := errors.AsType[*sqlite.Error](err)
			if !ok || e.Code() != c.code && e.Code()&0xff != c.code || sqldb.Classify(err) != c.want || sqldb.Unchanged(err) == (c.want == sqldb.Lost) {
				t.Errorf("%v of class %v, want %d of class %v", err, sqldb.Classify(err), c.code, c.want)
			}
		})
	}
	if err := exec(db, "SELECT FROM"); !strings.Contains(err.Error(), "(1)") {
		t.Errorf("%v does not have its number", err)
	}
}
