package testbed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Galera is MariaDB on several nodes, each of which accepts writes and replicates them to the others at COMMIT.
type Galera struct{ servers[*MariaDB] }

// StartGalera runs two or three nodes on free loopback ports and returns when each of them is in step. It needs what
// StartMariaDB needs, the library of the package galera-4, and rsync.
func StartGalera(ctx context.Context, n int) (*Galera, error) {
	provider, err := locateProvider()
	if err != nil {
		return nil, err
	}
	if _, err := locate("rsync"); err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 3*n)
	if err != nil {
		return nil, err
	}
	members := make([]string, n)
	for i := range members {
		members[i] = loopback(ports[i])
	}
	g := &Galera{}
	for i := range members {
		vars := map[string]string{
			"wsrep_on": "ON", "wsrep_provider": provider, "wsrep_node_address": "127.0.0.1", "wsrep_node_name": fmt.Sprintf("node-%d", i+1),
			"wsrep_cluster_address": "gcomm://" + strings.Join(members[:i], ","), // the first node founds the cluster
			"wsrep_sst_method":      "rsync", "wsrep_sst_receive_address": loopback(ports[n+i]),
			"wsrep_sst_donor": []string{"node-2,", "node-3,", "node-2,"}[i], // a donor does not write while it is copied; the first node always does
			"wsrep_provider_options": fmt.Sprintf("base_port=%d;gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=64M",
				ports[i], members[i], loopback(ports[2*n+i])),
			"binlog_format": "ROW", "innodb_autoinc_lock_mode": "2", "innodb_flush_log_at_trx_commit": "2",
		}
		node, err := StartMariaDB(ctx, MariaDBConfig{Vars: vars, galera: true})
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.nodes = append(g.nodes, node)
	}
	return g, nil
}

// locateProvider finds the library of write set replication where systems put it.
func locateProvider() (string, error) {
	const name = "libgalera_smm.so"
	if _, err := locate("mariadbd"); err != nil {
		return "", err
	}
	for _, folder := range []string{"/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib64/galera"} {
		if path := filepath.Join(folder, name); fileExists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// synced fails until the node has what the others have.
func synced(ctx context.Context, db *sql.DB) error {
	var name, state string
	if err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state); err != nil {
		return err
	}
	return expect("state of the node", state, "Synced")
}

// ownedBy gives folders to the user whom root has to run a server as: PostgreSQL and the state transfer of Galera refuse root.
func ownedBy(name string, folders ...string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.Chown(folder, uid, -1); err != nil {
			return err
		}
	}
	return nil
}
