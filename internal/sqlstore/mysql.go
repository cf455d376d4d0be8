package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/timeout/sqltimers"
)

// mysqlNow is when a statement began, mysqlPresent when it reads a row, which may have been locked.
const (
	mysqlNow     = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"
	mysqlPresent = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
)

// parseMySQL returns how to connect to the server that rawURL names, and its
// address without secrets.
func parseMySQL(rawURL string) (c *driver.Config, address string, err error) {
	// No error repeats a part of the text: an unescaped character in the password moves it anywhere.
	malformed := errors.New("database: want mysql://USER:PASSWORD@HOST:PORT/DATABASE, in PASSWORD %2F for / and so on for ? # %")
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, "", malformed
	}
	name := strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || name == "" || strings.Contains(name, "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", malformed
	}
	c = driver.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), name
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 2*time.Second, 3*time.Second, 3*time.Second
	c.ClientFoundRows = true
	c.InterpolateParams = true
	c.Logger = &driver.NopLogger{}
	return c, "mysql://" + c.Addr + "/" + name, nil
}

// mysqlDialect describes the MariaDB or MySQL server that rawURL names, which
// it asks for its version: the two have different names for the isolation
// level. tp traces the statements.
func mysqlDialect(ctx context.Context, rawURL string, tp trace.TracerProvider) (d dialect, address string, err error) {
	c, address, err := parseMySQL(rawURL)
	if err != nil {
		return dialect{}, "", err
	}
	var mariaDB, galera bool
	err = patiently(ctx, func() (err error) {
		mariaDB, galera, err = serverKind(ctx, c)
		return err
	})
	if err != nil {
		return dialect{}, "", fmt.Errorf("open database %s: %w", address, err)
	}
	c.Params = map[string]string{
		"innodb_lock_wait_timeout": "2",        // less than ReadTimeout, which would cut the session
		"time_zone":                "'+00:00'", // in UTC no hour comes twice
	}
	b := bounds(c, mariaDB)
	connector, err := driver.NewConnector(c)
	usual := c.Clone()
	usual.MultiStatements = !galera // for scripts; what comes from outside is an argument, and never part of a text
	main, usualErr := driver.NewConnector(usual)
	slow := c.Clone()
	delete(slow.Params, b.longest)
	slow.ReadTimeout = 0 // a change of the schema, or an audit, takes as long as the tables are large
	unhurried, slowErr := driver.NewConnector(slow)
	if err := errors.Join(err, usualErr, slowErr); err != nil {
		return dialect{}, "", fmt.Errorf("open database %s: %w", address, err)
	}
	generation := new(atomic.Int64)
	main, connector, unhurried = replacing{main, generation}, replacing{connector, generation}, replacing{unhurried, generation}
	if !galera {
		main = lazyBegin{main}
	}
	return dialect{
		name: "mysql", galera: galera,
		open: func() (gorm.Dialector, error) { // by a connector, as a data source name would lose the logger
			return mysql.New(mysql.Config{Conn: openMySQL(main, tp), SkipInitializeWithVersion: true}), nil
		},
		unhurried:   func() *sql.DB { return openMySQL(unhurried, tp) },
		within:      b.within,
		idle:        b.idle,
		session:     "SELECT CONNECTION_ID()",
		kill:        "KILL QUERY %d",
		connections: 32,
		scripts:     !galera,
		now:         mysqlNow,
		present:     mysqlPresent,
		forUpdate:   " FOR UPDATE",
		skipLocked:  " FOR UPDATE SKIP LOCKED",
		noWait:      " FOR UPDATE NOWAIT",
		shareFree:   b.share + " SKIP LOCKED",
		firstJoin:   "STRAIGHT_JOIN",
		insertNew:   "INSERT IGNORE",
		index:       func(name string) string { return " FORCE INDEX (" + name + ")" },
		purge:       "DELETE FROM idempotency_keys WHERE created_at < " + mysqlNow + " - ? ORDER BY created_at LIMIT ?",
		byKey:       " FORCE INDEX (PRIMARY)",
		timers:      sqltimers.MySQL,
		locks:       sqllock.MySQL,
		cluster:     sqlcluster.MySQL,
		pool:        func() (*sql.DB, error) { return openMySQL(connector, tp), nil },
	}, address, nil
}

// limits is what MariaDB and MySQL have in common under different names.
type limits struct {
	longest string                                     // variable: how long a statement may take
	within  func(query string, d time.Duration) string // see dialect
	idle    time.Duration                              // how long a connection is kept that nobody uses
	share   string                                     // suffix of a SELECT that keeps others from changing its rows
}

// maxIdle is how long a session may do nothing within a transaction. An instance that is paused keeps rows
// locked for no longer.
const maxIdle = 2 * time.Second

// bounds has sessions of c read committed data, end statements whose reader is gone, and end when they are idle in a
// transaction. MySQL's only such limit also ends sessions without a transaction: their connections are closed before.
func bounds(c *driver.Config, mariaDB bool) limits {
	if mariaDB {
		c.Params["tx_isolation"] = "'READ-COMMITTED'"
		c.Params["max_statement_time"] = strconv.FormatFloat(c.ReadTimeout.Seconds(), 'f', -1, 64)
		c.Params["idle_transaction_timeout"] = strconv.FormatFloat(maxIdle.Seconds(), 'f', -1, 64)
		return limits{
			longest: "max_statement_time", idle: time.Minute, share: " LOCK IN SHARE MODE",
			within: func(query string, d time.Duration) string {
				return fmt.Sprintf("SET STATEMENT max_statement_time = %.3f FOR %s", max(0.001, d.Seconds()), query)
			},
		}
	}
	c.Params["transaction_isolation"] = "'READ-COMMITTED'"
	c.Params["max_execution_time"] = strconv.FormatInt(c.ReadTimeout.Milliseconds(), 10)
	c.Params["wait_timeout"] = strconv.FormatFloat(maxIdle.Seconds(), 'f', -1, 64)
	return limits{
		longest: "max_execution_time", idle: maxIdle / 2, share: " FOR SHARE",
		within: func(query string, d time.Duration) string {
			return strings.Replace(query, "SELECT", fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */", max(1, d.Milliseconds())), 1)
		},
	}
}

// serverKind says whether the server is MariaDB, and whether it is a node of a Galera cluster.
func serverKind(ctx context.Context, c *driver.Config) (mariaDB, galera bool, err error) {
	connector, err := driver.NewConnector(c)
	if err != nil {
		return false, false, err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	var version, name, wsrep string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return false, false, err
	}
	err = db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").Scan(&name, &wsrep)
	if errors.Is(err, sql.ErrNoRows) { // a server without Galera
		err = nil
	}
	return strings.Contains(version, "MariaDB"), wsrep == "ON", err
}
