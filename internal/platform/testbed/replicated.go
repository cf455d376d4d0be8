package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// SellerStatements create a user seller with the password secret, who has all rights in the database of a server and may not write
// to a server that is read-only.
var SellerStatements = []string{"CREATE USER seller@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON " + DefaultDatabase + ".* TO seller@'%'"}

// Replicated is a server of MariaDB or MySQL, and its replicas: the writer is first.
type Replicated struct{ servers[*MariaDB] }

// StartReplicated runs a server and its replicas, which are read-only, with variables in addition to those that replication needs. All
// have the user of [SellerStatements]. A server that is restarted is read-only.
func StartReplicated(ctx context.Context, n int, vars map[string]string) (*Replicated, error) {
	r, errs := &Replicated{}, make([]error, n)
	r.nodes = make([]*MariaDB, n)
	var starts sync.WaitGroup
	for i := range n {
		own := map[string]string{
			"server_id": strconv.Itoa(i + 1), "log_bin": "log", "binlog_format": "ROW", "read_only": "1",
			"loose_log_slave_updates": "1", "loose_gtid_mode": "ON", "loose_enforce_gtid_consistency": "ON", // the first is for MariaDB, the others for MySQL
		}
		maps.Copy(own, vars)
		starts.Go(func() {
			if r.nodes[i], errs[i] = StartMariaDB(ctx, MariaDBConfig{Vars: own}); errs[i] == nil {
				errs[i] = r.nodes[i].forget(ctx)
			}
		})
	}
	starts.Wait()
	err := errors.Join(errs...)
	for i := 1; i < n && err == nil; i++ {
		err = r.nodes[i].Replicate(ctx, r.nodes[0])
	}
	if err == nil {
		err = r.nodes[0].Exec(ctx, "SET GLOBAL read_only = 0")
	}
	if err != nil {
		r.nodes = slices.DeleteFunc(r.nodes, func(m *MariaDB) bool { return m == nil })
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// forget has a server begin its log after it has created a user.
func (m *MariaDB) forget(ctx context.Context) error {
	mysql, err := m.IsMySQL(ctx)
	if err != nil {
		return err
	}
	reset := "RESET MASTER"
	if mysql {
		reset = "RESET BINARY LOGS AND GTIDS"
	}
	return m.Exec(ctx, slices.Concat(SellerStatements, []string{reset})...)
}

// Replicate lets a server replicate from another one.
func (m *MariaDB) Replicate(ctx context.Context, from *MariaDB) error {
	host, port, err := net.SplitHostPort(from.addr)
	if err != nil {
		return err
	}
	mysql, err := m.IsMySQL(ctx)
	if err != nil {
		return err
	}
	change := "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_USE_GTID=slave_pos"
	if mysql {
		change = "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='root', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
	}
	return m.Exec(ctx, "STOP REPLICA", fmt.Sprintf(change, host, port), "START REPLICA")
}

// IsMySQL reports whether the server is MySQL.
func (m *MariaDB) IsMySQL(ctx context.Context) (bool, error) {
	version, err := m.ask(ctx, "SELECT VERSION()")
	return !strings.Contains(version, "MariaDB"), err
}
