package testbedtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
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

// shared is a server that tests share. It has no owner that could close it: its guard ends it with the process, or when
// the garbage collector finds it.
type shared struct {
	io.Closer

	url string
}

var (
	sharedDatabases = map[string]func() (shared, error){ // by SHOP_TEST_DATABASE, which may be a URL instead
		"":       sync.OnceValues(func() (shared, error) { return startShared(nil) }),
		"galera": sync.OnceValues(startSharedGalera),
	}
	sharedSnapshots = sync.OnceValues(func() (shared, error) {
		return startShared(map[string]string{"innodb_snapshot_isolation": "ON"})
	})
)

// startShared starts a server that flushes nothing, so that tests do not wait for the disk. Nobody kills its process,
// and the machine keeps what it has written.
func startShared(vars map[string]string) (shared, error) {
	all := map[string]string{"innodb_flush_log_at_trx_commit": "2", "innodb_flush_method": "nosync"}
	maps.Copy(all, vars)
	server, err := testbed.StartMariaDB(context.Background(), testbed.MariaDBConfig{Vars: all})
	if err != nil {
		return shared{}, err
	}
	return shared{server, server.URL()}, nil
}

// startSharedGalera starts two nodes, and tests use the first.
func startSharedGalera() (shared, error) {
	cluster, err := testbed.StartGalera(context.Background(), 2)
	if err != nil {
		return shared{}, err
	}
	return shared{cluster, cluster.Nodes()[0].URL()}, nil
}

// Database returns the URL (mysql://USER:PASSWORD@HOST:PORT/DB) of an empty
// database for this test alone, on a server that other tests use at the same
// time. The database is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	server := os.Getenv("SHOP_TEST_DATABASE")
	if start, ok := sharedDatabases[server]; ok {
		running, err := start()
		require(t, err)
		server = running.url
	}
	return newDatabase(t, server)
}

// SnapshotDatabase is Database on a server with snapshot isolation: a transaction may not update a row that has
// changed since its snapshot. Newer versions have it by default. No variable of the environment names such a server.
func SnapshotDatabase(t testing.TB) string {
	t.Helper()
	server, err := sharedSnapshots()
	require(t, err)
	return newDatabase(t, server.url)
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
		return nil, nil, errors.New("SHOP_TEST_DATABASE: want galera, or mysql://USER:PASSWORD@HOST:PORT/DB")
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User = "tcp", address.Host, address.User.Username()
	if address.Port() == "" {
		cfg.Addr = address.Host + ":3306"
	}
	cfg.Passwd, _ = address.User.Password()
	return cfg, address, nil
}
