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

	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout/sqltimers"
	"example.com/shop/internal/timeout/timeouttest"
)

func TestStore(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		timeouttest.RunStore(t, timeouttest.StoreHarness{
			Many: testbedtest.Size(1000, 10_000), // in pure Go it is slow under the race detector
			New: func(t *testing.T) timeouttest.StoreClient {
				return client(t, openSQLite(t, "_txlock=immediate&"+pragmas), sqltimers.SQLite)
			},
		})
	})
	// Without it database/sql begins transactions that take the write lock late.
	t.Run("sqlite deferred", func(t *testing.T) {
		testbedtest.FullSize(t)
		timeouttest.RunStore(t, timeouttest.StoreHarness{
			Many: testbedtest.Size(1000, 10_000), // in pure Go it is slow under the race detector
			New: func(t *testing.T) timeouttest.StoreClient {
				return client(t, openSQLite(t, pragmas), sqltimers.SQLite)
			},
		})
	})
	t.Run("mariadb", func(t *testing.T) {
		timeouttest.RunStore(t, timeouttest.StoreHarness{
			RowLocks: true,
			New: func(t *testing.T) timeouttest.StoreClient {
				return client(t, openMariaDB(t, testbedtest.Database(t), nil), sqltimers.MySQL)
			},
		})
	})
	// Neither how rows are counted, nor prepared statements, nor the time zone matter.
	t.Run("mariadb otherwise", func(t *testing.T) {
		timeouttest.RunStore(t, timeouttest.StoreHarness{
			RowLocks: true,
			New: func(t *testing.T) timeouttest.StoreClient {
				return client(t, openMariaDB(t, testbedtest.Database(t), func(c *mysql.Config) {
					c.ClientFoundRows, c.InterpolateParams = false, false
					c.Params["time_zone"] = "'+05:30'"
				}), sqltimers.MySQL)
			},
		})
	})
}

const pragmas = "_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"

// openSQLite opens a new file.
func openSQLite(t testing.TB, query string) *sql.DB {
	t.Helper()
	return openSQLiteFile(t, filepath.Join(t.TempDir(), "timers.db"), query)
}

func openSQLiteFile(t testing.TB, file, query string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?"+query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// openMariaDB connects as the product does, unless change says otherwise.
func openMariaDB(t testing.TB, address string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connectorTo(t, address, change))
	db.SetMaxIdleConns(32)
	t.Cleanup(func() { db.Close() })
	return db
}

func connectorTo(t testing.TB, address string, change func(*mysql.Config)) driver.Connector {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{
		"tx_isolation": "'READ-COMMITTED'", "innodb_lock_wait_timeout": "2", "time_zone": "'+00:00'",
	}
	c.Logger = &mysql.NopLogger{}
	if change != nil {
		change(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	return connector
}

// client creates the tables, twice as any instance may, and returns a store.
func client(t testing.TB, db *sql.DB, d sqltimers.Dialect) timeouttest.StoreClient {
	t.Helper()
	for range 2 {
		for _, statement := range sqltimers.Schema(d) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
		}
	}
	s, err := sqltimers.New(db, d)
	if err != nil {
		t.Fatal(err)
	}
	return timeouttest.StoreClient{Store: s, Begin: func(ctx context.Context) (timeouttest.Transaction, error) {
		return db.BeginTx(ctx, nil)
	}}
}
