package sqllock

// Schema returns the statements that create the table. They may be run again, and do
// nothing then. It returns nil for an unknown dialect.
func Schema(d Dialect) []string {
	switch d {
	case SQLite:
		return []string{`CREATE TABLE IF NOT EXISTS leases (
  name       TEXT NOT NULL PRIMARY KEY,
  owner      TEXT NOT NULL,
  fence      INTEGER NOT NULL,
  forced     INTEGER NOT NULL,
  since_at   INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID`}
	case MySQL:
		// Bytes, because a column of text holds names for equal that differ in blanks at the end.
		return []string{`CREATE TABLE IF NOT EXISTS leases (
  name       VARBINARY(255) NOT NULL PRIMARY KEY,
  owner      VARBINARY(64) NOT NULL,
  fence      BIGINT NOT NULL,
  forced     BIGINT NOT NULL,
  since_at   BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB`}
	}
	return nil
}
