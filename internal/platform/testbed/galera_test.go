package testbed_test

import (
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestGaleraNodesReplicateToEachOther(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	mustExec(t, openDatabase(t, nodes[0].DSN()), "CREATE TABLE t (n INT PRIMARY KEY) ENGINE=InnoDB")
	for i, node := range nodes {
		db := openDatabase(t, node.DSN())
		if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", i); err != nil {
			t.Error(err)
		}
		testbedtest.Eventually(t, "the node has what the others wrote", func() bool { return count(t, db, "SELECT COUNT(*) FROM t") == i+1 })
	}
}
