package sqllock

import "example.com/shop/internal/platform/sqldb"

// Schema returns the statements that create the table. They may be run again, and do nothing then.
func Schema(e *sqldb.Engine) []string {
	return e.Create(sqldb.Table{
		Name: "leases", Key: "name",
		Columns: []string{
			"name bytes(255) NOT NULL", "owner bytes(64) NOT NULL", "fence integer NOT NULL", "forced integer NOT NULL",
			"since_at integer NOT NULL", "expires_at integer NOT NULL",
		},
	})
}
