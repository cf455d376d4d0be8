package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"net/url"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is what the leases of the tests have. A tenth of it, and a third, are times within
// which a busy machine must still get something done; all bounds grow with it.
const ttl = 3 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestMariaDB(t *testing.T) {
	t.Parallel()
	s := mariaDB(testbedtest.Database(t))
	s.create(t)
	conformance(t, ttl, func(testing.TB) store { return s })
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	s := store{engine: sqldb.PostgreSQL(), address: testbedtest.Postgres(t)}
	s.create(t)
	conformance(t, ttl, func(testing.TB) store { return s })
}

// TestMariaDBWithOtherSettings runs the conformance tests on a store that is configured otherwise. The usual size of
// this is a history.
func TestMariaDBWithOtherSettings(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	s := mariaDBOtherwise(t)
	s.create(t)
	conformance(t, ttl, func(testing.TB) store { return s })
}

// mariaDBOtherwise prepares statements and counts rows in the other way, in another time zone, and
// reads from snapshots: none of that matters.
func mariaDBOtherwise(t testing.TB) store {
	t.Helper()
	s := mariaDB(testbedtest.Database(t))
	s.change = func(c *mysql.Config) {
		c.ClientFoundRows, c.InterpolateParams = false, false
		c.Params["time_zone"] = "'+05:30'"
		c.Params[testbedtest.IsolationVariable(t, s.address)] = "'REPEATABLE-READ'"
	}
	return s
}

// TestSQLite has a file for each case, which the cases would otherwise wait for.
func TestSQLite(t *testing.T) {
	t.Parallel()
	var (
		mu    sync.Mutex
		files = map[string]store{}
	)
	conformance(t, 2*time.Second, func(t testing.TB) store { // shorter: there is no network
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		s, ok := files[t.Name()]
		if !ok {
			s = processes(t, 2)
			files[t.Name()] = s
			t.Cleanup(func() { // a case that runs once more has another one
				mu.Lock()
				defer mu.Unlock()
				delete(files, t.Name())
			})
		}
		return s
	})
}

// processes returns a SQLite file that so many processes use, with a pool each.
func processes(t testing.TB, n int) store {
	t.Helper()
	s := sqlite(filepath.Join(t.TempDir(), "locks.db"))
	s.create(t)
	for range n {
		pool := s.open(t)
		pool.SetMaxOpenConns(2)
		s.pools = append(s.pools, pool)
	}
	return s
}

// store is a database, and how to reach it.
type store struct {
	engine  *sqldb.Engine
	address string // of a server, or the name of a file
	change  func(*mysql.Config)
	wrap    func(driver.Connector) driver.Connector
	pools   []*sql.DB // shared by clients; nil: each has its own
}

func mariaDB(address string) store { return store{engine: sqldb.MariaDB(), address: address} }

func sqlite(file string) store { return store{engine: sqldb.SQLite(), address: file} }

// open returns a pool, as a process has it.
func (s store) open(tb testing.TB) *sql.DB {
	tb.Helper()
	if s.engine.OneWriter {
		db, err := sql.Open("sqlite", "file:"+s.address+"?_txlock=immediate&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { db.Close() })
		return db
	}
	connector := s.connector(tb)
	if s.wrap != nil {
		connector = s.wrap(connector)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	tb.Cleanup(func() { db.Close() })
	return db
}

// connector returns connections to a server, as a process has them.
func (s store) connector(tb testing.TB) driver.Connector {
	tb.Helper()
	if s.engine.Name == "postgresql" {
		d, err := sqldb.Open(tb.Context(), s.address, sqldb.AccessCreate)
		if err != nil {
			tb.Fatal(err)
		}
		return d.Single
	}
	u, err := url.Parse(s.address)
	if err != nil {
		tb.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 2*time.Second, 3*time.Second, 3*time.Second
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{
		testbedtest.IsolationVariable(tb, s.address): "'READ-COMMITTED'", "innodb_lock_wait_timeout": "2", "time_zone": "'+00:00'",
	}
	c.Logger = &mysql.NopLogger{}
	if s.change != nil {
		s.change(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		tb.Fatal(err)
	}
	return connector
}

// create creates the table, twice as any instance may, and returns a pool.
func (s store) create(tb testing.TB) *sql.DB {
	tb.Helper()
	db := s.open(tb)
	for range 2 {
		for _, statement := range sqllock.Schema(s.engine) {
			if _, err := db.ExecContext(tb.Context(), statement); err != nil {
				tb.Fatalf("%v\n%s", err, statement)
			}
		}
	}
	return db
}

// locker returns a Locker with a pool of its own.
func (s store) locker(tb testing.TB, cfg sqllock.Config) *sqllock.Locker {
	tb.Helper()
	var pool *sql.DB
	if len(s.pools) > 0 {
		pool = s.pools[rand.N(len(s.pools))]
	} else {
		pool = s.open(tb)
	}
	l, err := sqllock.New(pool, s.engine, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// behind returns a Locker whose connections go through a proxy.
func (s store) behind(t testing.TB, cfg sqllock.Config) (*sqllock.Locker, dlocktest.Link) {
	t.Helper()
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host, s.address = proxy.Addr(), ""
	s.address = u.String()
	return s.locker(t, cfg), dlocktest.Link{
		Cut: proxy.BlackHole,
		Heal: func() {
			if err := proxy.Pass(); err != nil {
				t.Error(err)
			}
		},
		Refuse:    proxy.Refuse,
		LoseReply: func() { proxy.DropReply(path.Base(t.Name())) }, // the key begins so; a statement that is only prepared has none
		Lost:      proxy.Dropped,
	}
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// conformance runs the tests of dlocktest on the store of each case.
func conformance(t *testing.T, ttl time.Duration, of func(t testing.TB) store) {
	t.Helper()
	h := dlocktest.Harness{
		New:       func(t testing.TB) dlock.Locker { return of(t).locker(t, sqllock.Config{TTL: ttl}) },
		TTL:       ttl,
		Reentrant: true,
		Expire: func(t testing.TB, key string) {
			exec(t, of(t).open(t), "UPDATE leases SET expires_at = 1 WHERE name = ?", key)
		},
		Wipe: func(t testing.TB, key string) {
			exec(t, of(t).open(t), "DELETE FROM leases WHERE name = ?", key)
			time.Sleep(2 * time.Millisecond) // the next token starts from the clock, which counts milliseconds on SQLite
		},
		Leftovers: func(t testing.TB, key string) (left []string) {
			var n int
			row := of(t).open(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leases WHERE name = ? AND (expires_at > 0 OR owner <> '')", key)
			if err := row.Scan(&n); err != nil || n > 0 {
				return []string{key}
			}
			return nil
		},
		Other: func(t testing.TB, ttl time.Duration) dlock.Locker {
			return of(t).locker(t, sqllock.Config{TTL: ttl})
		},
		Answers: []error{driver.ErrBadConn, &mysql.MySQLError{Number: 1062}},
		Foreign: func(t testing.TB, key string) {
			exec(t, of(t).open(t), "INSERT INTO leases (name, owner, fence, forced, since_at, expires_at) VALUES (?, 'maintenance', 1, 0, 0, ?)", key, int64(1)<<60)
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.Locker {
			return of(t).locker(t, sqllock.Config{TTL: ttl, MaxHold: limit})
		},
	}
	if !of(t).engine.OneWriter {
		h.Behind = func(t testing.TB) (dlock.Locker, dlocktest.Link) { return of(t).behind(t, sqllock.Config{TTL: ttl}) }
	}
	dlocktest.Run(t, h)
}
