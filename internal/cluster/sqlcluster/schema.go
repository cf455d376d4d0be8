package sqlcluster

// Dialect names the engine of a database.
type Dialect int

// The engines.
const (
	SQLite Dialect = iota + 1
	MySQL          // and MariaDB
)

// Schema returns the statements that create the tables. They may be run again, and do
// nothing then. It returns nil for an unknown dialect.
func Schema(d Dialect) []string {
	switch d {
	case SQLite:
		return []string{`CREATE TABLE IF NOT EXISTS cluster_members (
  group_name  TEXT NOT NULL,
  name        TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  address     TEXT NOT NULL,
  entry       TEXT NOT NULL,
  expires_at  INTEGER NOT NULL,
  PRIMARY KEY (group_name, name)
) WITHOUT ROWID`, `CREATE TABLE IF NOT EXISTS cluster_leaders (
  group_name TEXT NOT NULL,
  name       TEXT NOT NULL,
  token      TEXT NOT NULL,
  entry      TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (group_name, name)
) WITHOUT ROWID`}
	case MySQL:
		return []string{`CREATE TABLE IF NOT EXISTS cluster_members (
  group_name  VARBINARY(128) NOT NULL,
  name        VARBINARY(128) NOT NULL,
  incarnation VARBINARY(64) NOT NULL,
  address     VARBINARY(128) NOT NULL,
  entry       VARBINARY(2048) NOT NULL,
  expires_at  BIGINT NOT NULL,
  PRIMARY KEY (group_name, name)
) ENGINE=InnoDB`, `CREATE TABLE IF NOT EXISTS cluster_leaders (
  group_name VARBINARY(128) NOT NULL,
  name       VARBINARY(128) NOT NULL,
  token      VARBINARY(20) NOT NULL,
  entry      VARBINARY(2048) NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (group_name, name)
) ENGINE=InnoDB`}
	}
	return nil
}
