package app

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Each part of what an order needs is taken away from a running instance. /readyz names the part, and no other one, until
// the part is back.
func TestReadyzNamesTheMissingPart(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	admin := testbedtest.OpenSQL(t, server.URL())
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := admin.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	exec("CREATE USER seller@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON shop.* TO seller@'%'")
	proxy := testbedtest.StartProxy(t, server.Addr())
	in := start(t, Config{Database: "mysql://seller:secret@" + proxy.Addr() + "/shop"})
	in.becomes(t, "ok")
	for part, change := range map[string]struct{ take, giveBack func() }{
		"the database is read-only": {
			func() { exec("SET GLOBAL read_only = 1") }, func() { exec("SET GLOBAL read_only = 0") },
		},
		"the schema of the database is older than the program": {
			func() { exec("UPDATE schema_migrations SET version = -version WHERE version > 10") },
			func() { exec("UPDATE schema_migrations SET version = ABS(version)") },
		},
		"the database does not let the user write": {
			func() { exec("DROP USER seller@'%'"); proxy.Refuse(); pass(t, proxy) },
			func() { exec("CREATE USER seller@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON shop.* TO seller@'%'") },
		},
		"the database does not respond": {proxy.Refuse, func() { pass(t, proxy) }},
	} {
		change.take()
		in.becomes(t, "An order could not be stored: "+part)
		change.giveBack()
		in.becomes(t, "ok")
	}
}

// becomes waits until /readyz says want, which is "ok" or why the instance is not ready.
func (in running) becomes(t *testing.T, want string) {
	t.Helper()
	testbedtest.Eventually(t, "readyz: "+want, func() bool {
		resp, err := http.Get(in.url + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if strings.Contains(string(body), "secret") {
			t.Errorf("%s", body)
		}
		return err == nil && (resp.StatusCode == http.StatusOK) == (want == "ok") && strings.Contains(string(body), want)
	})
}

// The SQLite file of a running instance is moved away, and back. No file can be written next to it, as on a full disk.
func TestReadyzNamesTheMissingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	in := start(t, Config{Database: "sqlite:" + path})
	in.becomes(t, "ok")
	for _, move := range []struct{ from, to, want string }{
		{path, path + ".away", "An order could not be stored: the file of the database was deleted or replaced"},
		{path + ".away", path, "ok"},
	} {
		if err := os.Rename(move.from, move.to); err != nil {
			t.Fatal(err)
		}
		in.becomes(t, move.want)
	}
	inTheWay := path + "-room"
	if err := os.MkdirAll(inTheWay+"/full", 0o700); err != nil {
		t.Fatal(err)
	}
	in.becomes(t, "An order could not be stored: no file can be written in the folder of the database")
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	in.becomes(t, "ok")
}

func pass(t *testing.T, proxy *testbed.Proxy) {
	t.Helper()
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
}
