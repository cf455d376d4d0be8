package sqldb

import (
	"context"
	"database/sql"
	"strings"
)

// vitess returns the engine of a shard of Vitess, which the URL names: KEYSPACE:SHARD. vtgate sends the statements of such a session to
// the shard as they are. So each is one of MySQL, and no transaction reaches another shard. It returns nil if db is no Vitess.
func vitess(ctx context.Context, db *sql.DB) (*Engine, error) {
	var name, database string // as vtgate has it, which answers what reads no table, and as the server has it
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&name); err != nil {
		return nil, err
	}
	err := db.QueryRowContext(ctx, "SELECT DATABASE() FROM information_schema.schemata LIMIT 1").Scan(&database)
	if err != nil || name == database {
		return nil, err
	}
	_, shard, named := strings.Cut(name, ":")
	if !named {
		return nil, settingError("Vitess has the database " + name + " in shards, and an instance sells the SKUs of one: name it, such as " + name + ":-80")
	}
	e := MySQL()
	e.Name = "vitess"
	if e.Shard, _, _ = strings.Cut(shard, "@"); e.Shard == "0" { // the type of the server may follow
		e.Shard = "-" // both are all keys
	}
	return e, nil
}
