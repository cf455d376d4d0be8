package blackbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

// shopAs returns the URL of the server's database for a new user, who has rights in it.
func shopAs(t testing.TB, m *testbed.MariaDB, user, rights string) string {
	t.Helper()
	execAt(t, m, "CREATE USER "+user, "GRANT "+rights+" ON "+testbed.DefaultDatabase+".* TO "+user)
	return fmt.Sprintf("mysql://%s@%s/%s", user, m.Addr(), testbed.DefaultDatabase)
}

const rightsOfRows = "SELECT, INSERT, UPDATE, DELETE"

// A user without rights to change tables starts with a schema that another user has made.
func TestStartNeedsNoRightsToChangeTables(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	open(t, shopAs(t, server, "owner", rightsOfRows+", CREATE, ALTER"), "migrate")
	s := open(t, shopAs(t, server, "seller", rightsOfRows), "one")
	create(t, s, "a", "conditional", 1)
	place(t, s, time.Hour, "a")
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// A user who lacks a right that a migration needs is refused with the right, and nothing has changed: neither the schema,
// nor the rows that the migration changes before.
func TestMigrationWithoutRightsChangesNothing(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	refused := func(t *testing.T, user, rights, state string) {
		t.Helper()
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: shopAs(t, server, user, rights)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), state+": run shop migrate as a user with SELECT, INSERT, UPDATE, DELETE, CREATE and ALTER") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", rights, err)
		}
	}
	for user, more := range map[string]string{"a": "", "b": ", CREATE", "c": ", ALTER"} {
		refused(t, user, rightsOfRows+more, "the schema has version 0, and this program needs 16")
	}
	if got := rowsOf(t, server, "SHOW TABLES"); len(got) != 0 {
		t.Errorf("an empty database has %q", got)
	}

	s := open(t, server.URL(), "migrate")
	create(t, s, "a", "conditional", 9)
	execAt(t, server, "ALTER TABLE sku_segments DROP CONSTRAINT segments_are_folded",
		"UPDATE skus SET segments = 1", "INSERT INTO sku_segments (sku, segment, on_hand, reserved, version) VALUES ('a', 0, 5, 0, 0)",
		"DELETE FROM schema_migrations WHERE version > 10")
	state := func() (all []string) {
		for _, query := range []string{
			"SELECT CONCAT_WS(' ', table_name, column_name, column_type) FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1",
			"SELECT CONCAT_WS(' ', sku, on_hand, segments, version) FROM skus", "SELECT CONCAT_WS(' ', sku, on_hand) FROM sku_segments",
			"SELECT version FROM schema_migrations ORDER BY 1",
		} {
			all = append(all, rowsOf(t, server, query)...)
		}
		return all
	}
	before := state()
	for user, more := range map[string]string{"d": "", "e": ", CREATE", "f": ", ALTER"} {
		refused(t, user, rightsOfRows+more, "the schema has version 10, and this program needs 16")
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Error(diff)
	}
	open(t, shopAs(t, server, "owner", rightsOfRows+", CREATE, ALTER"), "migrate")
	if got := rowsOf(t, server, "SELECT CONCAT_WS(' ', on_hand, segments) FROM skus"); !cmp.Equal(got, []string{"14 0"}) {
		t.Errorf("after the migration: %q", got)
	}
}

// On PostgreSQL a user who does not own the tables is refused, and a migration by the superuser leaves them to their owner.
func TestMigrationKeepsTheOwnerOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	as := func(user string) string { return strings.Replace(server.URL(), "shop@", user+"@", 1) }
	admin := testbedtest.OpenSQL(t, server.URL())
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE ROLE owner LOGIN; CREATE ROLE seller LOGIN; GRANT CREATE ON SCHEMA public TO owner; " +
		"ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA public GRANT " + rightsOfRows + " ON TABLES TO seller")
	open(t, as("owner"), "migrate")
	exec("DELETE FROM schema_migrations WHERE version > 10")
	seller, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: as("seller")})
	if err != nil {
		t.Fatal(err)
	}
	defer seller.Close()
	if err := seller.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "run shop migrate as the owner of the tables, with CREATE on the schema") {
		t.Errorf("a user who is not the owner: %v", err)
	}
	open(t, server.URL(), "migrate")
	var owners string
	if err := admin.QueryRowContext(t.Context(), "SELECT STRING_AGG(DISTINCT tableowner, ',') FROM pg_tables WHERE schemaname = 'public'").Scan(&owners); err != nil || owners != "owner" {
		t.Errorf("the tables belong to %s, %v", owners, err)
	}
	create(t, seller, "a", "conditional", 1)
}

// A user who lacks several rights is refused with the same one each time.
func TestTriedWriteIsRefusedWithTheSameRight(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	open(t, server.URL(), "migrate")
	url := shopAs(t, server, "seller", "SELECT")
	execAt(t, server, "GRANT INSERT ON "+testbed.DefaultDatabase+".orders TO seller")
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 20 {
		if err := s.TryWrite(t.Context()); err == nil || !strings.Contains(err.Error(), "INSERT command denied") || !strings.Contains(err.Error(), "order_lines") {
			t.Fatalf("%v, want the right to insert into order_lines", err)
		}
	}
}

// rowsOf returns the rows of a query with one column.
func rowsOf(t testing.TB, m *testbed.MariaDB, query string) (all []string) {
	t.Helper()
	rows, err := testbedtest.OpenSQL(t, m.URL()).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
