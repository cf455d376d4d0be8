package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// postgres opens pools of the connections to a database.
func postgres(t *testing.T, url string) (usual, unhurried *sql.DB) {
	t.Helper()
	return postgresFor(t, url, sqldb.AccessCreate)
}

func postgresFor(t *testing.T, url string, access sqldb.Access) (usual, unhurried *sql.DB) {
	t.Helper()
	d, err := sqldb.Open(t.Context(), url, access)
	if err != nil {
		t.Fatal(err)
	}
	usual, unhurried = sql.OpenDB(d.Usual), sql.OpenDB(d.Unhurried)
	t.Cleanup(func() { usual.Close(); unhurried.Close() })
	return usual, unhurried
}

// A session has the settings on which the code relies, whatever those of the server are.
func TestSessionsOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{Vars: map[string]string{
		"standard_conforming_strings": "off", "default_transaction_isolation": "serializable", "timezone": "Asia/Tokyo",
		"bytea_output": "escape", "statement_timeout": "60000", "lock_timeout": "9000",
	}})
	usual, unhurried := postgres(t, server.URL())
	for pool, limits := range map[*sql.DB][2]string{usual: {"3s", "2s"}, unhurried: {"0", "0"}} {
		for setting, want := range map[string]string{
			"standard_conforming_strings": "on", "transaction_isolation": "read committed", "timezone": "UTC", "bytea_output": "hex",
			"idle_in_transaction_session_timeout": "2s", "statement_timeout": limits[0], "lock_timeout": limits[1],
		} {
			var got string
			if err := pool.QueryRowContext(t.Context(), "SELECT current_setting(?)", setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, want %q; %v", setting, got, want, err)
			}
		}
	}
}

// Arguments arrive as they are, and no text ends its quotes.
func TestArgumentsOfPostgreSQL(t *testing.T) {
	t.Parallel()
	db, _ := postgres(t, testbedtest.Postgres(t))
	text, number, bytes, none := `a'b\'c"?; -- $1 ü`, int64(-5), []byte{0, 255, '\''}, sql.NullString{}
	if err := db.QueryRowContext(t.Context(), "SELECT ?, 3-?, CAST(? AS BYTEA), ?", text, number, bytes, none).Scan(&text, &number, &bytes, &none); err != nil ||
		text != `a'b\'c"?; -- $1 ü` || number != 8 || string(bytes) != "\x00\xff'" || none.Valid {
		t.Errorf("%q, %d, %q, %v, %v", text, number, bytes, none, err)
	}
	if _, err := db.ExecContext(t.Context(), "SELECT ?", "a\x00b"); !sqldb.Unchanged(err) {
		t.Errorf("a zero byte: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), "SELECT ?", 1, 2); err == nil {
		t.Error("an argument too many was accepted")
	}
}

// The server itself gives each error that docs/reference/errors-of-stores.md marks so.
func TestErrorsOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{Vars: map[string]string{"max_connections": "12"}})
	db, unhurried := postgres(t, server.URL())
	execute := func(pool *sql.DB, statements ...string) error { return inSession(t, pool, statements...) }
	if err := execute(db, "CREATE TABLE t (id INT PRIMARY KEY, n INT, CONSTRAINT positive CHECK (n > 0))", "CREATE INDEX byn ON t (n)",
		"INSERT INTO t VALUES (1, 1), (2, 2)", "CREATE ROLE guest LOGIN"); err != nil {
		t.Fatal(err)
	}
	guest, _ := postgres(t, strings.Replace(server.URL(), "shop@", "guest@", 1))
	held := func(statements ...string) error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE t SET n = 3 WHERE id = 1"); err != nil {
			return err
		}
		return execute(db, statements...)
	}
	certificates := testbedtest.NewCertificates(t)
	guarded := "postgres://shop:wrong@" + testbedtest.SecurePostgres(t, certificates) + "?tls-ca=" + certificates.CA
	errs := map[string]provocation{
		"23505": {sqldb.Duplicate, func() error { return execute(db, "INSERT INTO t VALUES (1, 1)") }},
		"42703": {sqldb.NoSchema, func() error { return execute(db, "SELECT z FROM t") }},
		"42P01": {sqldb.NoSchema, func() error { return execute(db, "SELECT 1 FROM z") }},
		"42701": {sqldb.Repeated, func() error { return execute(db, "ALTER TABLE t ADD COLUMN n INT") }},
		"42710": {sqldb.Repeated, func() error { return execute(db, "ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)") }},
		"42P07": {sqldb.Repeated, func() error { return execute(db, "CREATE INDEX byn ON t (n)") }},
		"42601": {sqldb.None, func() error { return execute(db, "SELECT FROM WHERE") }},
		"42501": {sqldb.Denied, func() error { return execute(guest, "UPDATE t SET n = 2") }},
		"3F000": {sqldb.Denied, func() error { return execute(guest, "SET search_path = elsewhere; CREATE TABLE z (n INT)") }},
		"28000": {sqldb.Denied, func() error { return refused(t, strings.Replace(server.URL(), "shop@", "stranger@", 1)) }},
		"28P01": {sqldb.Denied, func() error { return refused(t, guarded) }},
		"40001": {sqldb.Conflict, func() error {
			return execute(db, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t", "ROLLBACK; UPDATE t SET n = n; BEGIN; "+
				"DO $$BEGIN RAISE serialization_failure; END$$")
		}},
		"40P01": {sqldb.Conflict, func() error { return deadlocked(t, unhurried) }},
		"55P03": {sqldb.RowLocked, func() error { return held("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT") }},
		"57014": {sqldb.Late, func() error { return held(sqldb.PostgreSQL().Within("SELECT * FROM t FOR UPDATE", 9000000)) }},
		"25006": {sqldb.ReadOnly, func() error { return execute(db, "SET default_transaction_read_only = on", "UPDATE t SET n = 2") }},
		"57P01": {sqldb.Stopping, func() error { return execute(db, "SELECT pg_terminate_backend(pg_backend_pid())") }},
		"25P03": {sqldb.Lost, func() error { return ended(t, db, "SET idle_in_transaction_session_timeout = 1; BEGIN") }},
		"57P05": {sqldb.Lost, func() error { return ended(t, db, "SET idle_session_timeout = 1") }},
		"53300": {sqldb.Starting, func() error { return crowded(t, guest, 12) }},
	}
	disk := smallDisk(t)
	full := map[string]provocation{
		"53100": {sqldb.Full, func() error {
			return execute(db, "CREATE TABLESPACE small LOCATION '"+disk+"'", "CREATE TABLE large (x TEXT) TABLESPACE small",
				"INSERT INTO large SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
		}},
	}
	if disk == "" {
		full = nil
	}
	last := map[string]provocation{
		"57P03": {sqldb.Starting, func() error { return stopping(t, server, db) }},
	}
	for _, errs := range []map[string]provocation{errs, full, last} {
		provokeAll(t, errs)
	}
}

func provokeAll(t *testing.T, errs map[string]provocation) {
	t.Helper()
	for code, c := range errs {
		t.Run(code, func(t *testing.T) {
			err := c.provoke()
			e, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || e.Code != code || sqldb.Classify(err) != c.want {
				t.Errorf("%v of class %v, want %s of class %v", err, sqldb.Classify(err), code, c.want)
			}
		})
	}
}

// inSession executes statements one after the other, until one fails.
func inSession(t *testing.T, pool *sql.DB, statements ...string) error {
	t.Helper()
	conn, err := pool.Conn(t.Context())
	for _, s := range statements {
		if err != nil {
			return err
		}
		_, err = conn.ExecContext(t.Context(), s)
	}
	return errors.Join(err, conn.Close())
}

// smallDisk returns a folder of the user postgres with room for a megabyte. It is empty where the test may not mount a disk.
func smallDisk(t *testing.T) string {
	t.Helper()
	owner, err := user.Lookup("postgres")
	if err != nil || runtime.GOOS != "linux" {
		t.Logf("no small disk: %v", err)
		return ""
	}
	folder := t.TempDir()
	for _, each := range []string{folder, filepath.Dir(folder)} { // the server's user has to enter them
		if err := os.Chmod(each, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1M,mode=0700,uid="+owner.Uid, "tmpfs", folder).CombinedOutput(); err != nil {
		t.Logf("no small disk: %v: %s", err, out)
		return ""
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "--lazy", folder).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return folder
}

// stopping asks a server to stop, which it does when its last session has ended, and returns why it refuses a new one.
func stopping(t *testing.T, server *testbed.Postgres, pool *sql.DB) (refusal error) {
	t.Helper()
	conn, err := pool.Conn(t.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	process, err := os.FindProcess(server.PID())
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return err
	}
	testbedtest.Eventually(t, "the server refuses sessions", func() bool {
		var one *pgconn.PgConn
		if one, refusal = pgconn.Connect(t.Context(), server.URL()); refusal == nil {
			err = one.Close(t.Context())
		}
		return refusal != nil || err != nil
	})
	return errors.Join(refusal, err)
}

// refused returns why a database cannot be opened.
func refused(t *testing.T, url string) error {
	t.Helper()
	_, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate)
	return err
}

// deadlocked returns the error of one of two transactions that lock two rows in opposite orders.
func deadlocked(t *testing.T, pool *sql.DB) error {
	t.Helper()
	ctx, errs := t.Context(), make(chan error, 2)
	var txs [2]*sql.Tx
	for i := range txs {
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0; UPDATE t SET n = 3 WHERE id = ?", i+1); err != nil {
			return err
		}
		txs[i] = tx
	}
	for i, tx := range txs {
		go func() {
			_, err := tx.ExecContext(ctx, "UPDATE t SET n = 3 WHERE id = ?", 2-i)
			errs <- err
		}()
	}
	return errors.Join(<-errs, <-errs)
}

// ended returns the error of a statement in a session that the server has ended, because it was idle after the statement before.
func ended(t *testing.T, pool *sql.DB, before string) error {
	t.Helper()
	conn, err := pool.Conn(t.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	var session int
	if err := conn.QueryRowContext(t.Context(), before+"; SELECT pg_backend_pid()").Scan(&session); err != nil {
		return err
	}
	testbedtest.Eventually(t, "the session is gone", func() bool {
		n := -1
		err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = ?", session).Scan(&n)
		return err == nil && n == 0
	})
	_, err = conn.ExecContext(t.Context(), "SELECT 1")
	return err
}

// crowded returns the error of the last of n sessions.
func crowded(t *testing.T, pool *sql.DB, n int) error {
	t.Helper()
	for range n {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
	}
	return nil
}

// Connections lead to the host that accepts writes, and follow it. A COMMIT that has nothing to commit is none.
func TestConnectionsLeadToTheWriterOfPostgreSQL(t *testing.T) {
	t.Parallel()
	a, b := testbedtest.StartPostgres(t, testbed.PostgresConfig{}), testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	demote := func(p *testbed.Postgres, on string) {
		t.Helper()
		_, admin := postgresFor(t, p.URL(), sqldb.AccessRead)
		if _, err := admin.ExecContext(t.Context(), "BEGIN READ WRITE; ALTER DATABASE shop SET default_transaction_read_only = "+on+"; COMMIT"); err != nil {
			t.Fatal(err)
		}
	}
	leads := func(pool *sql.DB, to *testbed.Postgres) {
		t.Helper()
		var port string
		if err := pool.QueryRowContext(t.Context(), "SHOW port").Scan(&port); err != nil || !strings.HasSuffix(to.Addr(), ":"+port) {
			t.Errorf("port %s, want %s; %v", port, to.Addr(), err)
		}
	}
	demote(a, "on")
	pool, _ := postgres(t, "postgres://shop@"+a.Addr()+","+b.Addr()+"/shop")
	leads(pool, b)
	if hosts := sqldb.Hosts(t.Context(), "postgres://shop@"+a.Addr()+","+b.Addr()+"/shop"); len(hosts) != 2 || hosts[0].Role != "read-only" || hosts[1].Role != "writer" {
		t.Errorf("%+v", hosts)
	}
	if err := openFails(t, a.URL()); sqldb.Classify(err) != sqldb.ReadOnly {
		t.Errorf("a single server that is read-only: %v", err)
	}
	demote(a, "off")
	if _, err := pool.ExecContext(t.Context(), "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	demote(b, "on")
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE t (n INT)"); sqldb.Classify(err) != sqldb.ReadOnly {
		t.Errorf("a write: %v", err)
	}
	leads(pool, a)
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	demote(b, "off")
	if err := sqldb.Await(t.Context(), func() error { return pool.PingContext(t.Context()) }); err != nil {
		t.Error(err)
	}
	leads(pool, b)
}

// openFails returns why a database cannot be opened for a second.
func openFails(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := sqldb.Open(ctx, url, sqldb.AccessChange)
	return err
}

// A first statement that the server cannot read does not end the transaction: what follows is rolled back with it.
func TestUnreadableStatementOfPostgreSQL(t *testing.T) {
	t.Parallel()
	db, _ := postgres(t, testbedtest.Postgres(t))
	ctx := t.Context()
	if _, err := db.ExecContext(ctx, "CREATE TABLE t (n INT)"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO t ("); !sqldb.Unchanged(err) {
		t.Errorf("half a statement: %v", err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	n := -1
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows after the rollback, %v", n, err)
	}
}

// A COMMIT whose transaction was rolled back fails. Without a standby that must have it, a COMMIT has an unknown outcome, also if the
// server ends its session, and nothing else ends its wait.
func TestCommitsOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	db, admin := postgres(t, server.URL())
	ctx := t.Context()
	begin := func(statement string) driver.Tx {
		t.Helper()
		tx, err := db.BeginTx(ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
		if err != nil && statement != "SELECT 1 FROM z" {
			t.Fatal(err)
		}
		return tx
	}
	for _, table := range []string{"t", "earlier"} {
		if _, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (n INT)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin("SELECT 1 FROM z").Commit(); !sqldb.Unchanged(err) {
		t.Errorf("COMMIT of a failed transaction: %v", err)
	}
	for _, s := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()"} {
		if _, err := admin.ExecContext(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	testbedtest.Eventually(t, "the server waits for its standby", func() bool { // a while after the sessions know it
		return begin("INSERT INTO earlier VALUES (1)").Commit() != nil
	})
	if err := begin("INSERT INTO t VALUES (1)").Commit(); sqldb.Classify(err) != sqldb.Lost {
		t.Errorf("COMMIT without a standby: %v", err)
	}
	n := -1
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows are visible that no standby has, %v", n, err)
	}
	var session int
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		err = tx.QueryRowContext(ctx, "INSERT INTO t VALUES (2) RETURNING pg_backend_pid()").Scan(&session)
	}
	if err != nil {
		t.Fatal(err)
	}
	committed := make(chan error, 1)
	go func() { committed <- tx.Commit() }()
	testbedtest.Eventually(t, "the COMMIT waits for its standby", func() bool {
		var event sql.NullString
		err := admin.QueryRowContext(ctx, "SELECT wait_event FROM pg_stat_activity WHERE pid = ?", session).Scan(&event)
		return err == nil && event.String == "SyncRep"
	})
	if _, err := admin.ExecContext(ctx, "SELECT pg_terminate_backend(?)", session); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; sqldb.Classify(err) != sqldb.Lost {
		t.Errorf("COMMIT of a session that the server has ended: %v", err)
	}
}
