package e2e_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestHostsThatCannotServeAreNamedAtTheStart: one host of a list is enough. Each other one that refuses, that is another
// engine, or that has another password has a warning with its address, the cause and no password.
func TestHostsThatCannotServeAreNamedAtTheStart(t *testing.T) {
	t.Parallel()
	const noAnswer = "check that the server runs, and that a server of this engine listens at the port" // also of a server that takes long to answer
	good, bad := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}), testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	testbedtest.Exec(t, good, testbed.SellerStatements...)
	testbedtest.Exec(t, bad, "CREATE USER seller@'%' IDENTIFIED BY 'other'")
	postgres := testbedtest.Postgres(t)
	at, name, _ := strings.Cut(strings.TrimPrefix(postgres, "postgres://shop@"), "/")
	for url, want := range map[string]map[string]string{
		"mysql://seller:secret@127.0.0.1:1," + good.Addr() + "," + at + "," + bad.Addr() + "/shop": {
			"127.0.0.1:1": "connection refused", at: noAnswer, bad.Addr(): "check the user, the password",
		},
		"postgres://shop:secret@" + at + ",127.0.0.1:1/" + name: {"127.0.0.1:1": "connection refused"},
	} {
		s := launch(t, "--database", url)
		s.listens(t)
		log := s.stderr.String()
		for host, cause := range want {
			said := 0
			for line := range strings.Lines(log) {
				if strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, `"host":"`+host+`"`) && (strings.Contains(line, cause) || strings.Contains(line, noAnswer)) {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%d warnings of %s with %q, want 1", said, host, cause)
			}
		}
		if strings.Contains(log, "secret") {
			t.Errorf("want no password: %s", log)
		}
	}
}

// TestStartAtAnotherEngine: the error says that the server may be another one.
func TestStartAtAnotherEngine(t *testing.T) {
	t.Parallel()
	mysql, postgres := testbedtest.Database(t), testbedtest.Postgres(t)
	for _, url := range []string{strings.Replace(postgres, "postgres://shop", "mysql://root", 1), strings.Replace(mysql, "mysql://root", "postgres://shop", 1)} {
		code, _, stderr := call(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--database", url)
		if code != 1 || !strings.HasSuffix(strings.TrimSpace(stderr), "a server of this engine listens at the port") {
			t.Errorf("%s: exit code %d: %s", url, code, stderr)
		}
	}
}

// hasNoTables fails the test if a database of MariaDB has tables.
func hasNoTables(t *testing.T, url string) {
	t.Helper()
	tables := -1
	err := testbedtest.OpenSQL(t, url).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("%d tables: %v", tables, err)
	}
}
