package sqldb_test

import (
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestNodeOutOfStepIsLeft: a node of Galera is not in step any more, and its address leads to another one. The first
// refusal is the only one, however many connections are open.
func TestNodeOutOfStepIsLeft(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	proxy := testbedtest.StartProxy(t, nodes[0].Addr())
	u, err := url.Parse(nodes[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host = proxy.Addr()
	d, err := sqldb.Open(t.Context(), u.String(), sqldb.AccessCreate)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(d.Usual)
	defer db.Close()
	db.SetMaxIdleConns(4)
	var open []*sql.Conn
	for range 4 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		conn.Close()
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (id INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	next := testbedtest.OpenSQL(t, nodes[1].URL())
	testbedtest.Eventually(t, "the other node has the table", func() bool {
		_, err := next.ExecContext(t.Context(), "DELETE FROM t")
		return err == nil
	})
	conflictsAtCommit(t, db, next) // while the cluster is whole
	proxy.Lead(nodes[1].Addr())
	if _, err := testbedtest.OpenSQL(t, nodes[0].URL()).ExecContext(t.Context(), "SET GLOBAL wsrep_reject_queries = ALL"); err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "DELETE FROM t")
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1047 || !sqldb.Is(err, sqldb.Starting) {
		t.Fatalf("the first statement: %v, want error 1047", err)
	}
	for range 4 {
		if _, err := db.ExecContext(t.Context(), "DELETE FROM t"); err != nil {
			t.Errorf("a statement after the first: %v", err)
		}
	}
}

// conflictsAtCommit has a transaction at one node insert a row that another node inserts before the COMMIT, which is refused. A transaction
// that is begun again succeeds.
func conflictsAtCommit(t *testing.T, one, another *sql.DB) {
	t.Helper()
	tx, err := one.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	}
	if err == nil {
		_, err = another.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	}
	if err != nil {
		t.Fatal(err)
	}
	err = tx.Commit()
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1213 || !sqldb.Is(err, sqldb.Conflict) {
		t.Errorf("COMMIT: %v, want error 1213", err)
	}
	if _, err := one.ExecContext(t.Context(), "INSERT INTO t VALUES (2)"); err != nil {
		t.Errorf("begun again: %v", err)
	}
}
