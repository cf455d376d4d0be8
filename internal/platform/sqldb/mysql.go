package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/shop/internal/platform/storeurl"
)

// maxIdle is how long a session may do nothing within a transaction. A process that is paused keeps rows locked for no
// longer.
const maxIdle = 2 * time.Second

// MySQL is the engine of MySQL 8 and later, and of what MariaDB has in common with it.
func MySQL() *Engine {
	const (
		now     = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
		present = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))" // the session's time zone is UTC
	)
	return &Engine{
		Name: "mysql", Dialect: "mysql",
		Facts: Facts{
			Scripts: true, LocksReachAllWriters: true, EndsReadsOnly: true, Connections: 32, InsertRows: 200,
			Idle: maxIdle / 2, // the only limit for an idle transaction ends sessions without one too
		},
		Now: now, Millis: "(" + now + ") DIV 1000",
		ForUpdate: " FOR UPDATE", SkipLocked: " FOR UPDATE SKIP LOCKED", NoWait: " FOR UPDATE NOWAIT",
		ShareFree: " FOR SHARE SKIP LOCKED", FirstJoin: "STRAIGHT_JOIN", Greatest: "GREATEST",
		Session: "SELECT CONNECTION_ID()", Kill: "KILL QUERY %d",
		Alter: "ALTER TABLE %s", Migrator: "a user with SELECT, INSERT, UPDATE, DELETE, CREATE and ALTER",
		Changed: "; SELECT ROW_COUNT() AS changed, " + present + " AS read_at",
		// Without the name of the index a small table is read, and locked, as a whole.
		ByKey:      " FORCE INDEX (PRIMARY)",
		Locked:     lockedAt(present),
		InsertNew:  func(into string) string { return "INSERT IGNORE INTO " + into },
		Index:      func(name string) string { return " FORCE INDEX (" + name + ")" },
		PrimaryKey: func(string) string { return "PRIMARY" },
		OnConflict: func(string) string { return " ON DUPLICATE KEY UPDATE " },
		Proposed:   func(column string) string { return "VALUES(" + column + ")" },
		DeleteSome: func(table, where string) string { return "DELETE FROM " + table + " WHERE " + where },
		Within: func(query string, d time.Duration) string {
			return strings.Replace(query, "SELECT", fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */", max(1, d.Milliseconds())), 1)
		},
		types: strings.NewReplacer("integer", "BIGINT").Replace,
		text: func(kind, size string) string {
			switch kind {
			case "ascii":
				return "VARCHAR(" + size + ") CHARACTER SET ascii COLLATE ascii_bin"
			case "text":
				return "VARCHAR(" + size + ") CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
			}
			// Bytes, because a column of text holds names for equal that differ in blanks at the end.
			return "VARBINARY(" + size + ")"
		},
		table: ") ENGINE=InnoDB", inTable: true, lockSchema: lockByName,
		settings: []string{mysqlVariables, mysqlStatus, mysqlSession},
	}
}

// mysqlClasses are the errors of MariaDB and MySQL.
var mysqlClasses = map[uint16]Class{
	1062: Duplicate,
	1054: NoSchema, 1146: NoSchema, // column, table
	1060: Repeated, 1061: Repeated, 1091: Repeated, 1826: Repeated, 3822: Repeated,
	1044: Denied, 1045: Denied, 1142: Denied, 1143: Denied, 1227: Denied, 1370: Denied,
	1665: Denied, // binlog_format
	1021: Full, 1114: Full,
	1020: Conflict,                 // with innodb_snapshot_isolation
	1213: Conflict, 3101: Conflict, // of one server, and of a group at COMMIT
	1205: RowLocked, 3572: RowLocked, // the latter is MySQL's answer to NOWAIT
	1969: Late, 3024: Late, // max_statement_time of MariaDB, max_execution_time of MySQL
	1290: ReadOnly, 1792: ReadOnly, 1836: ReadOnly, // the server, its transactions, MySQL's server
	1040: Starting, 1203: Starting, 1226: Starting, // too many sessions
	1047: Starting,                                 // a node of Galera that is not in step
	3781: Starting, 3782: Starting, 3783: Starting, // a new primary of a group applies what it had not yet
	1053: Stopping,
	1180: Lost, 1317: Lost, 1927: Lost, 4031: Lost, // COMMIT failed, the statement or session was killed, or idle
	3100: Lost,                                                 // a member of a group leaves it at COMMIT, and the others may have the transaction
	1105: Lost, 1815: Lost, 2003: Lost, 2006: Lost, 2013: Lost, // of Vitess: it cannot reach the shard, or has ended the transaction; the shard has lost its server
}

// mysqlClass returns the class of an error of MariaDB or MySQL, and whether err is one.
func mysqlClass(err error) (Class, bool) {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	if !ok {
		return None, false
	}
	return mysqlClasses[e.Number], true
}

// parseMySQL returns how to connect to the servers that rawURL names, their addresses, and all of that without secrets.
func parseMySQL(rawURL string) (c *mysqldriver.Config, hosts []string, address string, err error) {
	u, address, err := parseServers(rawURL, "mysql", "3306")
	if err != nil {
		return nil, nil, "", err
	}
	c = mysqldriver.NewConfig()
	c.User, c.Passwd, c.TLS = u.User, u.Password, u.TLS
	c.Net, c.DBName = "tcp", u.Path
	c.Timeout, c.ReadTimeout, c.WriteTimeout = hostTimeout, 3*time.Second, 3*time.Second
	c.ClientFoundRows = true
	c.InterpolateParams = true
	c.Logger = &mysqldriver.NopLogger{}
	return c, u.Hosts, address, nil
}

// hintError is an error of a new connection, with what to change.
type hintError struct {
	error

	hint string
}

// Error implements error.
func (e hintError) Error() string { return e.error.Error() + ": " + e.hint }

// Unwrap returns the error.
func (e hintError) Unwrap() error { return e.error }

// withHint adds what to change to an error, if that is known.
func withHint(err error, hint string) error {
	if hint == "" {
		return err
	}
	return hintError{err, hint}
}

// hinted separates an error and what to change.
func hinted(err error) hintError {
	if e, ok := errors.AsType[hintError](err); ok {
		return e
	}
	return hintError{err, ""}
}

// Hint returns what to change because a connection has failed with err, which is a part of its text, or nothing.
func Hint(err error) string { return hinted(err).hint }

// Hints of errors that are no answer of the engine, or only of one without TLS.
const (
	otherEngine = "check that a server of this engine listens at the port"
	noAnswer    = "check that the server runs, and that a server of this engine listens at the port"
	withoutTLS  = "switch TLS on in the server, or take its parameters out of the URL"
)

// explained adds to an error of a new connection what to change.
func explained(err error, secure bool) error {
	class, answered := classify(err)
	failed, network := errors.AsType[net.Error](err)
	unknown, name := errors.AsType[*net.DNSError](err)
	_, setting := errors.AsType[settingError](err)
	number := uint16(0)
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		number = e.Number
	}
	e, postgres := errors.AsType[*pgconn.PgError](err)
	hint := storeurl.Hint(err)
	switch {
	case number == 1049, postgres && e.Code == "3D000":
		hint = "check the name of the database, or create it by CREATE DATABASE and shop migrate --create"
	case number == 1105 && strings.Contains(err.Error(), "no healthy tablet"):
		hint = "check the shard, KEYSPACE:SHARD, against SHOW VITESS_SHARDS, and that its primary runs"
	case number == 1044:
		hint = "check the name of the database, and that the user has rights in it"
	case number == 1045, number == 3159, postgres && class == Denied:
		hint = "check the user, the password, and whether the server demands tls-ca=FILE, or tls-cert=FILE and tls-key=FILE too"
	case name && unknown.IsNotFound:
		hint = "check the name of the host"
	case errors.Is(err, mysqldriver.ErrNoTLS), strings.HasSuffix(err.Error(), "server refused TLS connection"):
		hint = withoutTLS
	case network && !name && failed.Timeout():
		hint = noAnswer
	case answered, network, setting, hint != "", errors.Is(err, context.Canceled):
	case secure: // the driver drops the alert
		hint = "check that the server accepts the certificate of tls-cert=FILE"
	case class == Lost: // as a server of PostgreSQL, which waits for the client to begin
		hint = noAnswer
	default:
		hint = otherEngine
	}
	return withHint(err, hint)
}

// session are the settings on which the code relies, whatever those of the server are.
func session() map[string]string {
	return map[string]string{
		"autocommit":               "1",
		"completion_type":          "'NO_CHAIN'",
		"sql_mode":                 "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
		"sql_safe_updates":         "0",
		"character_set_client":     "'utf8mb4'", // by which the driver escapes arguments
		"character_set_results":    "'utf8mb4'",
		"collation_connection":     "'utf8mb4_general_ci'",
		"time_zone":                "'+00:00'", // in UTC no hour comes twice
		"innodb_lock_wait_timeout": "2",        // less than ReadTimeout, which would cut the session
		"lock_wait_timeout":        "2",        // for tables
	}
}

// openMySQL asks the server that rawURL names for its engine.
func openMySQL(ctx context.Context, rawURL string, access Access) (*Database, error) {
	c, addresses, address, err := parseMySQL(rawURL)
	if err != nil {
		return nil, err
	}
	var engine *Engine
	hosts, err := hostsOf(c, addresses)
	if err == nil {
		err = Await(ctx, func() (err error) {
			engine, err = engineOf(ctx, hosts)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", address, err)
	}
	// In MariaDB's words, or in MySQL's: the isolation, how long a statement may take, and a transaction may be idle.
	c.Params = session()
	if !engine.LocksReachAllWriters {
		c.Params["wsrep_sync_wait"] = "1"
	}
	isolation, longest, idle, unit := "transaction_isolation", "max_execution_time", "wait_timeout", time.Millisecond
	if engine.Name != "mysql" && engine.Name != "vitess" {
		isolation, longest, idle, unit = "tx_isolation", "max_statement_time", "idle_transaction_timeout", time.Second
	}
	if engine.Shard != "" {
		c.Params["transaction_timeout"] = strconv.FormatInt(vitessLongest.Milliseconds(), 10)
	}
	c.Params[isolation] = "'READ-COMMITTED'"
	c.Params[longest] = strconv.FormatInt(int64(c.ReadTimeout/unit), 10)
	c.Params[idle] = strconv.FormatInt(int64(maxIdle/time.Second), 10)
	writer := engine.Shard == "" && access.needsWriter(len(hosts)) // vtgate leads each statement to the primary
	if writer {
		c.Params[mayWrite] = mayWriteOnce
	}
	usual := c.Clone()
	usual.MultiStatements = engine.Scripts // what comes from outside is an argument, and never part of a text
	asks := make(map[*mysqldriver.Config]string)
	if writer && engine.Scripts {
		asks[usual] = "SET " + mayWrite + " = " + mayWriteOnce + "; "
	}
	slow := c.Clone()
	delete(slow.Params, longest)
	delete(slow.Params, "lock_wait_timeout") // a migration that gives up loses its work
	delete(slow.Params, "transaction_timeout")
	slow.ReadTimeout = 0
	d := &Database{Engine: engine, Address: address}
	generation, shared := new(atomic.Int64), new(breaker)
	opening := map[*mysqldriver.Config]chan struct{}{usual: make(chan struct{}, maxOpening)}
	for config, to := range map[*mysqldriver.Config]*driver.Connector{usual: &d.Usual, c: &d.Single, slow: &d.Unhurried} {
		hosts, err := hostsOf(config, addresses)
		if err != nil {
			return nil, fmt.Errorf("open database %s: %w", address, err)
		}
		*to = serverConnector{hosts, generation, shared, config.MultiStatements, asks[config], opening[config]}
	}
	return d, nil
}

// Queries of names and values.
const (
	mysqlVariables = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'wsrep_on', 'log_bin', 'binlog_format', 'read_only', 'super_read_only', " +
		"'max_connections', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'group_replication_single_primary_mode')"
	mysqlStatus  = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'wsrep_local_state_comment')"
	mysqlSession = "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')"
)

// lockByName uses a named lock, one per database of the server, which ends with its session. The name fits MySQL's
// limit, and avoids MD5, which MySQL no longer has.
func lockByName(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error) {
	const name = "CONCAT('shop:migrate:', LEFT(SHA2(DATABASE(), 256), 32))"
	var got sql.NullInt64
	// Each wait is short, as the server does not notice at once that somebody has gone; the caller's context bounds the loop.
	for got.Int64 != 1 {
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+name+", 2)").Scan(&got); err != nil {
			return nil, err
		}
		if !got.Valid {
			return nil, errors.New("the server cannot lock the schema")
		}
	}
	return func(ctx context.Context, _ error) error {
		return conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK("+name+")").Scan(&got)
	}, nil
}
