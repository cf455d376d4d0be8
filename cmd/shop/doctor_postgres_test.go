package main

import (
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A PostgreSQL that would lose orders, or two that would sell them twice, are warnings. One that cannot store all texts is refused.
func TestDoctorOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server, other := testbedtest.StartPostgres(t, testbed.PostgresConfig{}), testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	if code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", server.URL()); code != 0 {
		t.Fatal(stderr)
	}
	archive := strings.TrimSuffix(server.URL(), testbed.DefaultDatabase) + "archive"
	for _, statement := range []string{"CREATE DATABASE archive", "ALTER DATABASE archive SET default_transaction_read_only = on"} {
		if _, err := testbedtest.OpenSQL(t, server.URL()).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", archive)
	if code != 1 || !strings.Contains(stderr, "name the server that accepts writes in --database") || strings.Contains(stderr, "that the server runs") {
		t.Errorf("a read-only database: exit code %d, %s", code, stderr)
	}
	both := "postgres://shop@" + server.Addr() + "," + other.Addr() + "/shop"
	for _, c := range []struct {
		spoil, database string
		want            []string
		value, change   string
	}{
		{"ALTER ROLE shop SET synchronous_commit = on", server.URL(), nil, "", ""},
		{"ALTER ROLE shop SET synchronous_commit = remote_apply", server.URL(), nil, "", ""},
		{"ALTER ROLE shop SET synchronous_commit = local", server.URL(), []string{"database synchronous_commit warn"}, "local", "loses orders"},
		{"ALTER ROLE shop SET synchronous_commit = off", server.URL(), []string{"database synchronous_commit warn"}, "off", "loses orders"},
		{
			"ALTER ROLE shop RESET ALL", both,
			[]string{"database role warn", "database synchronous_standby_names warn"},
			"2 hosts accept writes", "each would sell all units",
		},
		{
			"SELECT 1", "postgres://shop@" + server.Addr() + ",no-such-host.invalid/nowhere",
			[]string{"database host warn", "database host warn", "database open fail"},
			"no-such-host.invalid:5432: ", "or create it by CREATE DATABASE and shop migrate --create; check the name of the host",
		},
		{
			"CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0", "postgres://shop@" + server.Addr() + "/latin",
			[]string{"database open fail"},
			"the database has the encoding LATIN1", "create it with ENCODING 'UTF8'",
		},
	} {
		if _, err := testbedtest.OpenSQL(t, server.URL()).ExecContext(t.Context(), c.spoil); err != nil {
			t.Fatal(err)
		}
		code := 0
		if slices.ContainsFunc(c.want, func(check string) bool { return strings.HasSuffix(check, "fail") }) {
			code = 1
		}
		table, checks := doctor(t, code, "--database", c.database)
		text := strings.Join(table, "\n")
		if got := failures(checks); !slices.Equal(got, c.want) || !strings.Contains(text, c.value) || !strings.Contains(text, c.change) {
			t.Errorf("%s: %q, want %q, %q and %q:\n%s", c.spoil, got, c.want, c.value, c.change, text)
		}
	}
	db := testbedtest.OpenSQL(t, server.URL())
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'db2'", "SELECT pg_reload_conf()"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	testbedtest.Eventually(t, "the server has the setting", func() bool {
		var is string
		return db.QueryRowContext(t.Context(), "SHOW synchronous_standby_names").Scan(&is) == nil && is == "db2"
	})
	if _, checks := doctor(t, 0, "--database", both); !slices.Equal(failures(checks), []string{"database role warn"}) {
		t.Errorf("with a standby: %q", failures(checks))
	}
}
