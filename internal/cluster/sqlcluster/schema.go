package sqlcluster

import "example.com/shop/internal/platform/sqldb"

// Schema returns the statements that create the tables. They may be run again, and do nothing then.
func Schema(e *sqldb.Engine) []string {
	return e.Create(
		sqldb.Table{
			Name: "cluster_members", Key: "group_name, name",
			Columns: []string{
				"group_name bytes(128) NOT NULL", "name bytes(128) NOT NULL", "incarnation bytes(64) NOT NULL",
				"address bytes(128) NOT NULL", "entry bytes(2048) NOT NULL", "expires_at integer NOT NULL",
			},
		},
		sqldb.Table{
			Name: "cluster_leaders", Key: "group_name, name",
			Columns: []string{
				"group_name bytes(128) NOT NULL", "name bytes(128) NOT NULL", "token bytes(20) NOT NULL",
				"entry bytes(2048) NOT NULL", "expires_at integer NOT NULL",
			},
		})
}
