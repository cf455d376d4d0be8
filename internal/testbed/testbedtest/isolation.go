package testbedtest

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// IsolationVariable returns the name of the variable with the isolation level on the server of a database: MariaDB and MySQL
// have different ones.
func IsolationVariable(t testing.TB, database string) string {
	t.Helper()
	c, _, err := parse(database)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(version, "MariaDB") {
		return "tx_isolation"
	}
	return "transaction_isolation"
}
