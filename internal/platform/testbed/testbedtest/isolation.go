package testbedtest

import (
	"strings"
	"testing"
)

// IsolationVariable returns the name of the variable with the isolation level on the server of a database: MariaDB and MySQL
// have different ones.
func IsolationVariable(t testing.TB, database string) string {
	t.Helper()
	var version string
	if err := OpenSQL(t, database).QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(version, "MariaDB") {
		return "tx_isolation"
	}
	return "transaction_isolation"
}
