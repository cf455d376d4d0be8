package cli_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func noEnv(string) string { return "" }

// run runs a command of operators and returns its exit code.
func run(ctx context.Context, getenv func(string) string, stdout, stderr io.Writer, args ...string) int {
	p := cli.Process{Getenv: getenv, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr}
	return cli.Execute(ctx, cli.Program(p, cli.Command{Name: "shop", Commands: cli.Operators()}), args)
}

// call runs a command and returns its exit code and what it printed.
func call(t *testing.T, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), getenv, &out, &err, args...)
	return code, out.String(), err.String()
}

// migrated prepares a database.
func migrated(t *testing.T, database string) {
	t.Helper()
	if code, out, stderr := call(t, noEnv, "migrate", "--create", "--database", database); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
}

// openStore opens a database, with its schema.
func openStore(t *testing.T, database string) *sqlstore.Store {
	t.Helper()
	migrated(t, database)
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}
