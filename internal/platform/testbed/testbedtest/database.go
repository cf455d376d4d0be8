package testbedtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/testbed"
)

// dropTimeout bounds the clean-up after a test, whose own context has ended by then.
const dropTimeout = 30 * time.Second

// Neither shared server has an owner that could close it: its guard ends it with the process.
var (
	sharedMariaDB   = sync.OnceValues(func() (*testbed.MariaDB, error) { return startShared(nil) })
	sharedSnapshots = sync.OnceValues(func() (*testbed.MariaDB, error) {
		return startShared(map[string]string{"innodb_snapshot_isolation": "ON"})
	})
)

// startShared starts a server that flushes nothing, so that tests do not wait for the disk. Nobody kills its process,
// and the machine keeps what it has written.
func startShared(vars map[string]string) (*testbed.MariaDB, error) {
	all := map[string]string{"innodb_flush_log_at_trx_commit": "2", "innodb_flush_method": "nosync"}
	maps.Copy(all, vars)
	return testbed.StartMariaDB(context.Background(), testbed.MariaDBConfig{Vars: all})
}

// Database returns the URL (mysql://USER:PASSWORD@HOST:PORT/DB) of an empty
// database for this test alone, on a server that other tests use at the same
// time. The database is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	server := os.Getenv("SHOP_TEST_DATABASE")
	if server == "" {
		shared, err := sharedMariaDB()
		require(t, err)
		server = shared.URL()
	}
	return newDatabase(t, server)
}

// SnapshotDatabase is Database on a server with snapshot isolation: a transaction may not update a row that has
// changed since its snapshot. Newer versions have it by default. No variable of the environment names such a server.
func SnapshotDatabase(t testing.TB) string {
	t.Helper()
	server, err := sharedSnapshots()
	require(t, err)
	return newDatabase(t, server.URL())
}

// StartMariaDB starts a MariaDB server for this test alone.
func StartMariaDB(t testing.TB, cfg testbed.MariaDBConfig) *testbed.MariaDB {
	t.Helper()
	server, err := testbed.StartMariaDB(t.Context(), cfg)
	return started(t, server, err)
}

// StartGalera starts a Galera cluster of three MariaDB nodes for this test alone.
func StartGalera(t testing.TB) *testbed.Galera {
	t.Helper()
	cluster, err := testbed.StartGalera(t.Context(), 3)
	return started(t, cluster, err)
}

// StartGroup starts three MySQL servers with Group Replication for this test alone. They have the user of [testbed.SellerStatements].
func StartGroup(t testing.TB, programs string) *testbed.Group {
	t.Helper()
	group, err := testbed.StartGroup(t.Context(), programs, testbed.SellerStatements...)
	return started(t, group, err)
}

// newDatabase creates a database with a unique name alongside the one in the URL.
func newDatabase(t testing.TB, server string) string {
	t.Helper()
	cfg, address, err := parse(server)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	name := "shop_test_" + strings.ToLower(rand.Text())
	db := sql.OpenDB(connector)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("database for a test: %v", errors.Join(err, db.Close()))
	}
	closeAtEnd(t, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropTimeout)
		defer cancel()
		_, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name)
		return errors.Join(err, db.Close())
	})
	address.Path = "/" + name
	return address.String()
}

// parse reads mysql://USER:PASSWORD@HOST:PORT/DB. The configuration names no
// database, because the one in the URL need not exist.
func parse(server string) (*mysql.Config, *url.URL, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "mysql" || address.Host == "" {
		// The parser's own error would repeat the password.
		return nil, nil, errors.New("SHOP_TEST_DATABASE: want mysql://USER:PASSWORD@HOST:PORT/DB")
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User = "tcp", address.Host, address.User.Username()
	if address.Port() == "" {
		cfg.Addr = address.Host + ":3306"
	}
	cfg.Passwd, _ = address.User.Password()
	return cfg, address, nil
}
