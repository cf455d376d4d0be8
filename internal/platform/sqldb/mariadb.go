package sqldb

import (
	"fmt"
	"time"
)

// MariaDB is the engine of MariaDB 10.6 and later. It has the tables, migrations and errors of [MySQL].
func MariaDB() *Engine {
	e := MySQL()
	e.Name, e.Idle, e.EndsReadsOnly = "mariadb", time.Minute, false
	e.ShareFree = " LOCK IN SHARE MODE SKIP LOCKED"
	e.Within = func(query string, d time.Duration) string {
		return fmt.Sprintf("SET STATEMENT max_statement_time = %.3f FOR %s", max(0.001, d.Seconds()), query)
	}
	return e
}

// galera is a node of a cluster of MariaDB servers. If another node has written the same row, the node may roll a
// transaction back between two statements of a packet. It carries out the rest, each on its own, and COMMIT succeeds.
func galera() *Engine {
	e := MariaDB()
	e.Name, e.Scripts, e.Changed, e.LocksReachAllWriters = "galera", false, "", false
	return e
}
