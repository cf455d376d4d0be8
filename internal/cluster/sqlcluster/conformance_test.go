package sqlcluster_test

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/glebarez/go-sqlite" // the driver
	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is how long a member that has died is listed in the tests. A third of it is a time
// within which a busy machine must still get something done.
const ttl = 2 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestMariaDB(t *testing.T) {
	t.Parallel()
	server(t, store{engine: sqldb.MariaDB(), address: testbedtest.Database(t)})
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	server(t, store{engine: sqldb.PostgreSQL(), address: testbedtest.Postgres(t)})
}

// server runs the conformance tests on a store that a network can cut off.
func server(t *testing.T, s store) {
	t.Helper()
	s.create(t)
	h := s.harness()
	h.Behind = func(t testing.TB, group string) (clustertest.Instance, clustertest.Link) {
		far, proxy := s.behind(t)
		return far.instance(t, group, func(error) {}), clustertest.Link{
			Cut: proxy.BlackHole,
			Heal: func() {
				if err := proxy.Pass(); err != nil {
					t.Error(err)
				}
			},
			LoseJoin: func() { proxy.DropReply("INTO cluster_members") },
			Lost:     proxy.Dropped,
		}
	}
	clustertest.Run(t, h)
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	s := store{engine: sqldb.SQLite(), address: filepath.Join(t.TempDir(), "cluster.db")}
	s.create(t)
	h, db := s.harness(), s.open(t)
	h.Unlocked = func(t testing.TB) bool {
		tx, err := db.BeginTx(t.Context(), nil) // immediate: it takes the lock for writes
		return err == nil && tx.Rollback() == nil
	}
	clustertest.Run(t, h)
}

const (
	addressVariable = "SHOP_TEST_SQLCLUSTER_ADDRESS"
	groupVariable   = "SHOP_TEST_SQLCLUSTER_GROUP"
)

// TestInstance is no test: the conformance tests run it in processes of their own.
func TestInstance(t *testing.T) {
	clustertest.Serve(t, func(t testing.TB) (clustertest.Instance, string) {
		s := store{engine: sqldb.SQLite(), address: os.Getenv(addressVariable)}
		if u, err := url.Parse(s.address); err == nil && u.Scheme == "mysql" {
			s.engine = sqldb.MariaDB()
		} else if u.Scheme == "postgres" {
			s.engine = sqldb.PostgreSQL()
		}
		group := os.Getenv(groupVariable)
		return s.instance(t, group, func(error) {}), group
	})
}

// store is a database, and how to reach it.
type store struct {
	engine  *sqldb.Engine
	address string // of a server, or the name of a file
}

// open returns a pool, as a process has it.
func (s store) open(t testing.TB) *sql.DB {
	t.Helper()
	if s.engine.OneWriter {
		db, err := sql.Open("sqlite", "file:"+s.address+"?_txlock=immediate&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
		check(t, err)
		db.SetMaxOpenConns(2)
		t.Cleanup(func() { db.Close() })
		return db
	}
	if s.engine.Name == "postgresql" {
		d, err := sqldb.Open(t.Context(), s.address, sqldb.AccessCreate)
		check(t, err)
		db := sql.OpenDB(d.Single)
		db.SetMaxOpenConns(3)
		t.Cleanup(func() { db.Close() })
		return db
	}
	u, err := url.Parse(s.address)
	check(t, err)
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	c.Timeout, c.ReadTimeout, c.WriteTimeout = time.Second, time.Second, time.Second
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{testbedtest.IsolationVariable(t, s.address): "'READ-COMMITTED'", "innodb_lock_wait_timeout": "1"}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	check(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(3)
	t.Cleanup(func() { db.Close() })
	return db
}

// behind returns the same database behind a proxy.
func (s store) behind(t testing.TB) (store, *testbed.Proxy) {
	t.Helper()
	u, err := url.Parse(s.address)
	check(t, err)
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	s.address = u.String()
	return s, proxy
}

// create creates the tables, twice as any instance may.
func (s store) create(t testing.TB) {
	t.Helper()
	db := s.open(t)
	for range 2 {
		for _, statement := range sqlcluster.Schema(s.engine) {
			exec(t, db, statement)
		}
	}
}

// instance has a pool of its own, as another process would. Its configuration is fixed.
func (s store) instance(t testing.TB, group string, onError func(error)) clustertest.Instance {
	t.Helper()
	db := s.open(t)
	c, err := sqlcluster.New(db, s.engine, sqlcluster.Config{Group: group, TTL: ttl, OnError: onError})
	check(t, err)
	return clustertest.Instance{Membership: c, ConfigStore: cluster.Fixed{}, Elect: func(key, name string) (cluster.Election, error) {
		return c.Election(key, name)
	}}
}

func (s store) harness() clustertest.Harness {
	return clustertest.Harness{
		New:  s.instance,
		TTL:  ttl,
		Seen: time.Second,
		Expire: func(t testing.TB, group, name string) {
			exec(t, s.open(t), "UPDATE cluster_members SET expires_at = 0 WHERE group_name = ? AND name = ?", group, name)
		},
		Depose: func(t testing.TB, group string) {
			exec(t, s.open(t), "UPDATE cluster_leaders SET expires_at = 0 WHERE name = ?", group)
		},
		Stray: func(t testing.TB, group string) int {
			const live = "api;v1;20260102T030405.000Z"
			entries := map[string]string{
				"no member": "", "too short": "name", "no time": "name;addr;role;v;yesterday",
				"another name": "name;addr;" + live, "no name": ";addr;" + live, "escape": "%zz;addr;" + live,
			}
			db := s.open(t)
			exec(t, db, "INSERT INTO cluster_members VALUES (?, 'expired', 'x', '', '', 1)", group)
			for name, entry := range entries {
				exec(t, db, "INSERT INTO cluster_members VALUES (?, ?, 'x', '', ?, "+s.engine.Now+" + ?)", group, name, entry, ttl.Microseconds())
			}
			go keepStrays(t, s, db, group)
			return len(entries)
		},
		Process: func(_ testing.TB, group string) (string, []string) {
			return "TestInstance", []string{addressVariable + "=" + s.address, groupVariable + "=" + group}
		},
	}
}

// keepStrays keeps the entries of a group alive, as members do, until the test ends.
func keepStrays(t testing.TB, s store, db *sql.DB, group string) {
	tick := time.NewTicker(ttl / 8)
	defer tick.Stop()
	for range tick.C {
		_, err := db.ExecContext(t.Context(), "UPDATE cluster_members SET expires_at = "+s.engine.Now+" + ? WHERE group_name = ? AND incarnation = 'x' AND name <> 'expired'",
			ttl.Microseconds(), group)
		if t.Context().Err() != nil {
			return
		}
		if err != nil {
			t.Logf("the strays were not renewed: %v", err)
		}
	}
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement, args...)
	check(t, err)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
