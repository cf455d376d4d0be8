package sqltimers

// Schema returns the statements that create the tables. They may be run again, and do
// nothing then. It returns nil for an unknown dialect.
func Schema(d Dialect) []string {
	switch d {
	case SQLite:
		return sqliteSchema()
	case MySQL:
		return mysqlSchema()
	}
	return nil
}

func sqliteSchema() []string {
	return []string{
		`CREATE TABLE IF NOT EXISTS timeouts (
  kind        TEXT NOT NULL,
  id          TEXT NOT NULL,
  lane        TEXT NOT NULL,
  due_at      INTEGER NOT NULL,
  next_at     INTEGER NOT NULL,
  attempt     INTEGER NOT NULL DEFAULT 0,
  state       TEXT NOT NULL DEFAULT 'OPEN',
  trace       TEXT NOT NULL,
  last_error  TEXT NOT NULL DEFAULT '',
  created_at  INTEGER NOT NULL DEFAULT (` + sqlite().now + `),
  PRIMARY KEY (kind, id)
) WITHOUT ROWID`,
		`CREATE INDEX IF NOT EXISTS timeouts_next ON timeouts (state, next_at, kind, id, lane)`,
		`CREATE INDEX IF NOT EXISTS timeouts_lane ON timeouts (lane, state)`,
		`CREATE TABLE IF NOT EXISTS timeout_kinds (
  kind   TEXT NOT NULL PRIMARY KEY,
  paused INTEGER NOT NULL
) WITHOUT ROWID`,
		`CREATE TABLE IF NOT EXISTS timeout_lanes (
  lane     TEXT NOT NULL,
  instance TEXT NOT NULL,
  seen_at  INTEGER NOT NULL,
  PRIMARY KEY (lane, instance)
) WITHOUT ROWID`,
	}
}

func mysqlSchema() []string {
	return []string{
		`CREATE TABLE IF NOT EXISTS timeouts (
  kind        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  id          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  due_at      BIGINT NOT NULL,
  next_at     BIGINT NOT NULL,
  attempt     INT NOT NULL DEFAULT 0,
  state       VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'OPEN',
  trace       VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  last_error  VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL DEFAULT (` + mysql().now + `),
  PRIMARY KEY (kind, id),
  KEY timeouts_next (state, next_at, kind, id, lane),
  KEY timeouts_lane (lane, state)
) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS timeout_kinds (
  kind   VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  paused TINYINT NOT NULL
) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS timeout_lanes (
  lane     VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  instance VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  seen_at  BIGINT NOT NULL,
  PRIMARY KEY (lane, instance)
) ENGINE=InnoDB`,
	}
}
