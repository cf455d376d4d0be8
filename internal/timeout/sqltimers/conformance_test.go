package sqltimers_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"path/filepath"
	"testing"

	_ "github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout/sqltimers"
	"example.com/shop/internal/timeout/timeouttest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		engine *sqldb.Engine
		open   func(tb testing.TB) *sql.DB
	}{
		{"sqlite", sqldb.SQLite(), func(tb testing.TB) *sql.DB { return openSQLite(tb, "_txlock=immediate&"+pragmas) }},
		// Without it database/sql begins transactions that take the write lock late.
		{"sqlite deferred", sqldb.SQLite(), func(tb testing.TB) *sql.DB { return openSQLite(tb, pragmas) }},
		{"mariadb", sqldb.MariaDB(), func(tb testing.TB) *sql.DB { return openMariaDB(tb, testbedtest.Database(tb), nil) }},
		{"postgresql", sqldb.PostgreSQL(), func(tb testing.TB) *sql.DB { return testbedtest.OpenSQL(tb, testbedtest.Postgres(tb)) }},
		// Neither how rows are counted, nor prepared statements, nor the time zone matter.
		{"mariadb otherwise", sqldb.MariaDB(), func(tb testing.TB) *sql.DB {
			return openMariaDB(tb, testbedtest.Database(tb), func(c *mysql.Config) {
				c.ClientFoundRows, c.InterpolateParams = false, false
				c.Params["time_zone"] = "'+05:30'"
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			many := testbedtest.Size(4000, 10_000) // pages of 777, of each state
			if c.engine.OneWriter {
				many = testbedtest.Size(1000, 10_000) // in pure Go it is slow under the race detector
			}
			if c.name == "sqlite deferred" {
				testbedtest.FullSize(t)
			}
			timeouttest.RunStore(t, timeouttest.StoreHarness{RowLocks: !c.engine.OneWriter, Many: many, New: func(t *testing.T) timeouttest.StoreClient {
				t.Helper()
				return client(t, c.open(t), c.engine)
			}})
		})
	}
}

const pragmas = "_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"

// openSQLite opens a new file.
func openSQLite(tb testing.TB, query string) *sql.DB {
	tb.Helper()
	return openSQLiteFile(tb, filepath.Join(tb.TempDir(), "timers.db"), query)
}

func openSQLiteFile(tb testing.TB, file, query string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?"+query)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// openMariaDB connects as the product does, unless change says otherwise.
func openMariaDB(tb testing.TB, address string, change func(*mysql.Config)) *sql.DB {
	tb.Helper()
	db := sql.OpenDB(connectorTo(tb, address, change))
	db.SetMaxIdleConns(32)
	tb.Cleanup(func() { db.Close() })
	return db
}

func connectorTo(tb testing.TB, address string, change func(*mysql.Config)) driver.Connector {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{
		testbedtest.IsolationVariable(tb, address): "'READ-COMMITTED'", "innodb_lock_wait_timeout": "2", "time_zone": "'+00:00'",
	}
	c.Logger = &mysql.NopLogger{}
	if change != nil {
		change(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		tb.Fatal(err)
	}
	return connector
}

// client creates the tables, twice as any instance may, and returns a store.
func client(tb testing.TB, db *sql.DB, d *sqldb.Engine) timeouttest.StoreClient {
	tb.Helper()
	for range 2 {
		for _, statement := range sqltimers.Schema(d) {
			if _, err := db.ExecContext(tb.Context(), statement); err != nil {
				tb.Fatalf("%v\n%s", err, statement)
			}
		}
	}
	s, err := sqltimers.New(db, d)
	if err != nil {
		tb.Fatal(err)
	}
	return timeouttest.StoreClient{Store: s, Begin: func(ctx context.Context) (timeouttest.Transaction, error) {
		return db.BeginTx(ctx, nil)
	}}
}

func TestMain(m *testing.M) { testbedtest.Main(m) }
