package sqltimers

import "example.com/shop/internal/platform/sqldb"

// Schema returns the statements that create the tables. They may be run again, and do nothing then.
func Schema(e *sqldb.Engine) []string {
	return e.Create(
		sqldb.Table{
			Name: "timeouts", Key: "kind, id",
			Columns: []string{
				"kind ascii(32) NOT NULL", "id ascii(64) NOT NULL", "lane ascii(32) NOT NULL", "due_at integer NOT NULL",
				"next_at integer NOT NULL", "attempt integer NOT NULL DEFAULT 0", "state ascii(8) NOT NULL DEFAULT 'OPEN'",
				"trace ascii(128) NOT NULL", "last_error text(1000) NOT NULL DEFAULT ''",
				"created_at integer NOT NULL DEFAULT (" + e.Millis + ")",
			},
			Indexes: [][2]string{{"timeouts_next", "state, next_at, kind, id, lane"}, {"timeouts_lane", "lane, state"}},
		},
		sqldb.Table{
			Name: "timeout_kinds", Key: "kind",
			Columns: []string{"kind ascii(32) NOT NULL", "paused integer NOT NULL"},
		},
		sqldb.Table{
			Name: "timeout_lanes", Key: "lane, instance",
			Columns: []string{"lane ascii(32) NOT NULL", "instance text(255) NOT NULL", "seen_at integer NOT NULL"},
		})
}
