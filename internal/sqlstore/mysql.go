package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

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
	u, err := url.Parse(rawURL)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err // the rest of the text would repeat the password
		}
		return nil, "", fmt.Errorf("database: want mysql://USER:PASSWORD@HOST:PORT/DATABASE: %w", err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || name == "" || strings.Contains(name, "/") || u.RawQuery != "" {
		return nil, "", fmt.Errorf("database %s: want mysql://USER:PASSWORD@HOST:PORT/DATABASE", u.Redacted())
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
// level.
func mysqlDialect(ctx context.Context, rawURL string) (d dialect, dsn, address string, err error) {
	c, address, err := parseMySQL(rawURL)
	if err != nil {
		return dialect{}, "", "", err
	}
	version := ""
	err = patiently(ctx, func() (err error) {
		version, err = serverVersion(ctx, c)
		return err
	})
	if err != nil {
		return dialect{}, "", "", fmt.Errorf("open database %s: %w", address, err)
	}
	c.Params = map[string]string{
		"innodb_lock_wait_timeout": "2",        // less than ReadTimeout, which would cut the session
		"time_zone":                "'+00:00'", // in UTC no hour comes twice
	}
	isolation := "transaction_isolation"
	if strings.Contains(version, "MariaDB") {
		isolation = "tx_isolation"
		c.Params["idle_transaction_timeout"] = "5" // an instance that is stopped keeps no rows locked; MySQL has no such limit
	}
	c.Params[isolation] = "'READ-COMMITTED'"
	connector, err := driver.NewConnector(c)
	if err != nil {
		return dialect{}, "", "", fmt.Errorf("open database %s: %w", address, err)
	}
	usual := c.Clone()
	usual.MultiStatements = true // for scripts; what comes from outside is an argument, and never part of a text
	scripts, err := driver.NewConnector(usual)
	if err != nil {
		return dialect{}, "", "", fmt.Errorf("open database %s: %w", address, err)
	}
	slow := c.Clone()
	slow.ReadTimeout = 0 // a change of the schema, or an audit, takes as long as the tables are large
	unhurried, err := driver.NewConnector(slow)
	if err != nil {
		return dialect{}, "", "", fmt.Errorf("open database %s: %w", address, err)
	}
	return dialect{
		name: "mysql",
		open: func(string) gorm.Dialector { // by a connector, as a data source name would lose the logger
			return mysql.New(mysql.Config{Conn: sql.OpenDB(scripts), SkipInitializeWithVersion: true})
		},
		unhurried:   func() *sql.DB { return sql.OpenDB(unhurried) },
		connections: 32,
		scripts:     true,
		now:         mysqlNow,
		present:     mysqlPresent,
		forUpdate:   " FOR UPDATE",
		forShare:    " LOCK IN SHARE MODE",
		firstJoin:   "STRAIGHT_JOIN",
		insertNew:   "INSERT IGNORE",
		index:       func(name string) string { return " FORCE INDEX (" + name + ")" },
		purge:       "DELETE FROM idempotency_keys WHERE created_at < " + mysqlNow + " - ? ORDER BY created_at LIMIT ?",
		byKey:       " FORCE INDEX (PRIMARY)",
		timers:      sqltimers.MySQL,
		locks:       sqllock.MySQL,
		pool:        func() (*sql.DB, error) { return sql.OpenDB(connector), nil },
	}, "", address, nil
}

func serverVersion(ctx context.Context, c *driver.Config) (version string, err error) {
	connector, err := driver.NewConnector(c)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	return version, err
}
