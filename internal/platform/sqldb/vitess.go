package sqldb

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// vitessLongest is how long a transaction may take on Vitess. vtgate ignores wait_timeout, which ends an idle one on a server. So a
// process that is paused keeps rows locked for this long.
const vitessLongest = 5 * time.Second

// vitess returns the engine of a shard of Vitess, which the URL names: KEYSPACE:SHARD. vtgate sends the statements of such a session to
// the shard as they are. So each is one of MySQL, and no transaction reaches another shard. It returns nil if db is no Vitess.
func vitess(ctx context.Context, db *sql.DB) (*Engine, error) {
	var name, is string
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&name); err != nil {
		return nil, err
	}
	keyspace, shard, named := strings.Cut(name, ":")
	shard, role, _ := strings.Cut(shard, "@")
	keyspace, _, _ = strings.Cut(keyspace, "@")
	if !named {
		if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&is); err != nil || !strings.HasSuffix(is, "-Vitess") {
			return nil, err
		}
	} else {
		// vtgate answers what reads no table. So it has called the database by the name in the URL, and the server has another one.
		err := db.QueryRowContext(ctx, "SELECT DATABASE() FROM information_schema.schemata LIMIT 1").Scan(&is)
		if err != nil || is == name {
			return nil, err
		}
	}
	if shard == "" || role != "" && role != "primary" {
		return nil, settingError("Vitess has the database " + keyspace + " in shards, and an instance sells the SKUs of one at its primary: name it, such as " + keyspace + ":-80")
	}
	e := MySQL()
	e.Name, e.Shard = "vitess", shard
	e.Kill = "" // a shard names sessions of its own, and vtgate ends those of clients
	if shard == "0" {
		e.Shard = "-" // both are all keys
	}
	return e, nil
}
