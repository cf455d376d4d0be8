package testbed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// VitessShards are those of a keyspace of [Vitess].
func VitessShards() []string { return []string{"-80", "80-"} }

// Vitess is vtcombo: a process with a topology, a vtgate and the tablets of two shards. The databases of the shards are in one MySQL.
type Vitess struct {
	*Process

	addr, status string
}

// StartVitess runs vtcombo from a folder, on free loopback ports, over a server that is MySQL 8 or later. It returns when the
// keyspace DefaultDatabase answers at each of its shards.
func StartVitess(ctx context.Context, folder string, over *MariaDB) (*Vitess, error) {
	process, err := openProcess(ctx, "vitess", filepath.Join(folder, "vtcombo"))
	if err != nil {
		return nil, err
	}
	v := &Vitess{Process: process}
	process.ready = v.ready
	var shards strings.Builder
	for _, shard := range VitessShards() {
		err = errors.Join(err, over.Exec(ctx, "CREATE DATABASE "+quote("vt_"+DefaultDatabase+"_"+shard)))
		fmt.Fprintf(&shards, "shards:{name:%q} ", shard)
	}
	schema := filepath.Join(v.folder, "schema", DefaultDatabase)
	err = errors.Join(err, os.MkdirAll(schema, 0o700), os.WriteFile(filepath.Join(schema, "vschema.json"), []byte(`{"sharded": true}`), 0o600))
	host, port, bad := net.SplitHostPort(over.Addr())
	if err := errors.Join(err, bad); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, v.startOn(ctx, func(own int) error {
		others, err := freePorts(ctx, 2)
		if err != nil {
			return err
		}
		v.addr, v.status = loopback(own), loopback(others[0])
		v.args = []string{
			"--mysql-server-port", fmt.Sprint(own), "--mysql-server-bind-address", "127.0.0.1", "--mysql-auth-server-impl", "none",
			"--port", fmt.Sprint(others[0]), "--bind-address", "127.0.0.1", "--grpc-port", fmt.Sprint(others[1]), "--grpc-bind-address", "127.0.0.1",
			"--db-host", host, "--db-port", port, "--db-charset", "utf8mb4", "--mysql-server-version", "9.7.0-Vitess",
			"--proto-topo", fmt.Sprintf("keyspaces:{name:%q replica_count:1 rdonly_count:-1 %s}", DefaultDatabase, &shards), // one server for each shard
			"--tablet-types-to-wait", "PRIMARY", "--mycnf-server-id", "1", "--schema-dir", filepath.Dir(schema), "--normalize-queries",
			"--queryserver-config-pool-size", "100", "--queryserver-config-transaction-cap", "300",
		}
		for _, role := range []string{"app", "appdebug", "dba", "allprivs", "filtered", "repl"} {
			v.args = append(v.args, "--db-"+role+"-user", "root")
		}
		return nil
	})
}

// URL is the address of a shard as mysql://root@HOST:PORT/shop:SHARD.
func (v *Vitess) URL(shard string) string {
	return "mysql://root@" + v.addr + "/" + DefaultDatabase + ":" + shard
}

// Status is the HOST:PORT of pages about the process.
func (v *Vitess) Status() string { return v.status }

func (v *Vitess) ready(ctx context.Context, _ int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	for _, shard := range VitessShards() {
		cfg := mysql.NewConfig()
		cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "tcp", v.addr, DefaultDatabase+":"+shard
		cfg.Logger = new(mysql.NopLogger)
		connector, bad := mysql.NewConnector(cfg)
		if bad != nil {
			return bad
		}
		db := sql.OpenDB(connector)
		err = errors.Join(err, db.PingContext(ctx), db.Close())
	}
	return err
}
