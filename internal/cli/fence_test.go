package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// A rebase that does not apply is refused in one line, and changes nothing.
func TestFenceByCommand(t *testing.T) {
	t.Parallel()
	for engine, database := range map[string]string{"sqlite": "sqlite:" + t.TempDir() + "/shop.db", "mariadb": testbedtest.Database(t)} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, database)
			for sku, strategy := range map[string]string{"a": "etcd", "b": "redis", "c": "redlock", "d": "sql", "e": "conditional"} {
				if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: strategy, OnHand: 5}); err != nil {
					t.Fatal(err)
				}
			}
			refused := func(want string, args ...string) {
				t.Helper()
				code, out, stderr := call(t, noEnv, append(append([]string{"fence"}, args...), "--database", database)...)
				if code != 1 || out != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "malformed") || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%q: exit code %d: %s%s", args, code, out, stderr)
				}
			}
			for sku, want := range map[string]string{"b": "by itself", "c": "by itself", "d": "by itself", "e": "no fences", "none": "no such SKU"} {
				refused(want, "rebase", sku)
			}
			before, err := store.Levels(t.Context(), "", 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range before {
				if l.Base != 0 || l.Version != 1 {
					t.Errorf("a refused rebase has left %+v", l)
				}
			}

			longest := func(name string) string { // the ledger has no room for all of it
				return map[string]string{"USER": strings.Repeat("ä", 100)}[name]
			}
			if code, out, stderr := call(t, longest, "fence", "rebase", "a", "--database", database); code != 0 {
				t.Errorf("exit code %d: %s%s", code, out, stderr)
			}
			var by string
			raw := testbedtest.OpenSQL(t, database)
			if err := raw.QueryRowContext(t.Context(), "SELECT instance FROM ledger WHERE movement = 'REBASE'").Scan(&by); err != nil || by != strings.Repeat("ä", 32) {
				t.Errorf("by %q, %v", by, err)
			}
			code, out, stderr := call(t, noEnv, "fence", "list", "--database", database)
			if lines := strings.Count(out, "\n"); code != 0 || lines != 5 || strings.Count(out, "never") != 3 || strings.Contains(out, "conditional") {
				t.Errorf("exit code %d: %s%s", code, out, stderr)
			}
			var listed []struct{ SKU, Rebase string }
			code, asJSON, stderr := call(t, noEnv, "fence", "list", "--database", database, "--json")
			if err := json.Unmarshal([]byte(asJSON), &listed); err != nil || code != 0 || len(listed) != 4 || listed[0].SKU != "a" || listed[0].Rebase != "unknown" || listed[1].Rebase != "never" {
				t.Errorf("exit code %d: %v: %s%s", code, err, asJSON, stderr)
			}
			// A service that is unavailable leaves its column open, and is named.
			code, away, stderr := call(t, noEnv, "fence", "list", "--database", database, "--etcd", "127.0.0.1:1")
			if code != 1 || away != out || !strings.Contains(stderr, "etcd is unavailable") {
				t.Errorf("exit code %d: %s%s", code, away, stderr)
			}

			code, out, stderr = call(t, noEnv, "fence", "list", "--database", database, "--zookeeper-auth", "u:secret")
			if code != 2 || out != "" || !strings.Contains(stderr, "--zookeeper: give both") || strings.Contains(stderr, "secret") {
				t.Errorf("a user without servers: exit code %d: %s%s", code, out, stderr)
			}

			for _, statement := range []string{"ALTER TABLE skus DROP COLUMN fence_base", "DELETE FROM schema_migrations WHERE version >= 6"} {
				if _, err := raw.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			refused("shop migrate", "rebase", "a")
		})
	}
}
