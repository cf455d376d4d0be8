package main

import (
	"strings"
	"testing"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestGaleraNodeIsNamedAtTheStart starts an instance on a server with write set replication, and one on a server without.
func TestGaleraNodeIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	node := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"wsrep_on": "ON"}})
	for database, want := range map[string]int{node.URL(): 1, testbedtest.Database(t): 0} {
		s := launch(t, "--database", database)
		s.listens(t)
		if n := strings.Count(s.stderr.String(), "is a node of a Galera cluster"); n != want {
			t.Errorf("%d warnings, want %d: %s", n, want, s.stderr)
		}
	}
}
