package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// PostgreSQL is the engine of PostgreSQL 14 and later. A statement that waits for a row reads it again when it has the
// lock, as READ COMMITTED does in MariaDB. A statement that fails ends its transaction.
func PostgreSQL() *Engine {
	micros := func(clock string) string { return "CAST(EXTRACT(EPOCH FROM " + clock + ") * 1000000 AS BIGINT)" }
	return &Engine{
		Name: "postgresql", Dialect: "postgresql",
		Facts: Facts{
			Scripts: true, LocksReachAllWriters: true, Returning: true, RowValues: true,
			LocksAsStored: true, LocksPassInserts: true,
			Connections: 32, InsertRows: 200, Idle: time.Minute,
		},
		Now: micros("statement_timestamp()"), Millis: "CAST(FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * 1000) AS BIGINT)",
		ForUpdate: " FOR UPDATE", SkipLocked: " FOR UPDATE SKIP LOCKED", NoWait: " FOR UPDATE NOWAIT",
		ShareFree: " FOR SHARE SKIP LOCKED", FirstJoin: "JOIN", Greatest: "GREATEST",
		Session: "SELECT pg_backend_pid()", Kill: "SELECT pg_cancel_backend(%d)",
		Alter: "ALTER TABLE %s SET WITHOUT OIDS", Migrator: "the owner of the tables, with CREATE on the schema", // no table has OIDs
		Changed: " RETURNING 1 AS changed, " + micros("clock_timestamp()") + " AS read_at",
		Locked: func(columns, from string) string { // columns are evaluated before the row is locked
			return "SELECT locked.*, " + micros("clock_timestamp()") + " AS read_at FROM (SELECT " + columns + " FROM " + from + ") AS locked"
		},
		InsertNew:  func(into string) string { return "INSERT INTO " + into + " ON CONFLICT DO NOTHING" },
		Index:      func(string) string { return "" }, // only rows that are returned are locked
		PrimaryKey: func(string) string { return "" },
		OnConflict: func(key string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " },
		Proposed:   func(column string) string { return "excluded." + column },
		DeleteSome: func(table, where string) string {
			return "DELETE FROM " + table + " WHERE ctid = ANY(ARRAY(SELECT ctid FROM " + table + " WHERE " + where + "))"
		},
		Within: func(query string, d time.Duration) string {
			return fmt.Sprintf("SET LOCAL statement_timeout = %d; %s; SET LOCAL statement_timeout TO DEFAULT", max(1, d.Milliseconds()), query)
		},
		types: strings.NewReplacer("integer", "BIGINT").Replace,
		text:  func(_, size string) string { return "VARCHAR(" + size + ") COLLATE \"C\"" },
		table: ")", lockSchema: lockByNumber,
		settings: []string{"SELECT name, setting FROM pg_settings WHERE name IN ('max_connections', 'transaction_isolation', 'fsync', 'synchronous_commit', 'synchronous_standby_names') " +
			"UNION ALL SELECT 'version', current_setting('server_version') UNION ALL SELECT 'read_only', UPPER(current_setting('transaction_read_only')) " +
			"UNION ALL SELECT 'Threads_connected', CAST(COUNT(*) AS TEXT) FROM pg_stat_activity WHERE backend_type = 'client backend'"},
	}
}

// postgresClasses are the errors of PostgreSQL, by SQLSTATE.
var postgresClasses = map[string]Class{
	"23505": Duplicate,
	"42703": NoSchema, "42P01": NoSchema, // column, table
	"42701": Repeated, "42710": Repeated, "42P07": Repeated, // column, constraint, table or index
	"28000": Denied, "28P01": Denied, "3F000": Denied, "42501": Denied,
	"53100": Full,
	"40001": Conflict, "40P01": Conflict,
	"55P03": RowLocked,
	"57014": Late,
	"25006": ReadOnly,
	"53300": Starting, "57P03": Starting, // too many sessions; it starts, or stops
	"57P01": Stopping, "57P02": Stopping,
	"08000": Lost, "08003": Lost, "08006": Lost, "08007": Lost, "25P03": Lost, "40003": Lost, "57P05": Lost,
}

// postgresClass returns the class of an error of PostgreSQL, and whether err is one.
func postgresClass(err error) (Class, bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return None, false
	}
	return postgresClasses[e.Code], true
}

// parsePostgres returns how to connect to the servers that rawURL names, their addresses, and all of that without secrets.
func parsePostgres(rawURL string) (hosts []*pgconn.Config, addresses []string, address string, err error) {
	u, address, err := parseServers(rawURL, "postgres", "5432")
	if err != nil {
		return nil, nil, "", err
	}
	for _, host := range u.Hosts {
		c, err := postgresConfig(u, host)
		if err != nil {
			return nil, nil, "", err
		}
		hosts = append(hosts, c)
	}
	return hosts, u.Hosts, address, nil
}

// openPostgres connects once to find out whether a server answers. Of several hosts, it asks each that answers whether it fits.
func openPostgres(ctx context.Context, rawURL string, access Access) (*Database, error) {
	configs, addresses, address, err := parsePostgres(rawURL)
	if err != nil {
		return nil, err
	}
	generation, shared := new(atomic.Int64), new(breaker)
	connector := func(timeout time.Duration, params map[string]string) serverConnector {
		return serverConnector{postgresHosts(configs, addresses, access.needsWriter(len(configs)), timeout, params), generation, shared, timeout > 0, "", nil}
	}
	single, slow := connector(postgresTimeout, postgresSession()), postgresSession()
	usual := single
	usual.opening = make(chan struct{}, maxOpening)
	slow["statement_timeout"], slow["lock_timeout"] = "0", "0" // a migration that gives up loses its work
	err = Await(ctx, func() error {
		conn, err := usual.Connect(ctx)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		if len(configs) == 1 {
			err = explained(err, usual.hosts[0].secure)
		}
		return nil, fmt.Errorf("open database %s: %w", address, err)
	}
	if len(configs) > 1 {
		if err := misfit(ctx, usual.hosts); err != nil {
			return nil, fmt.Errorf("open database %s: %w", address, err)
		}
	}
	return &Database{
		Engine: PostgreSQL(), Address: address,
		Usual: usual, Single: single, Unhurried: connector(0, slow),
	}, nil
}

// misfit returns an error if a host answers and can never replace another one: it is not PostgreSQL, or lacks TLS or a setting that the code needs.
func misfit(ctx context.Context, hosts []host) error {
	for _, h := range rolesOf(ctx, hosts) {
		if _, setting := errors.AsType[settingError](h.Err); setting || Hint(h.Err) == otherEngine || Hint(h.Err) == withoutTLS {
			return fmt.Errorf("%s: %w", h.Address, h.Err)
		}
	}
	return nil
}

// postgresHosts returns the hosts with sessions that have the settings of params.
func postgresHosts(configs []*pgconn.Config, addresses []string, writer bool, timeout time.Duration, params map[string]string) []host {
	hosts := make([]host, len(configs))
	for i, c := range configs {
		to := c.Copy()
		to.RuntimeParams = params
		hosts[i] = host{postgresConnector{to, timeout, writer}, addresses[i], c.TLSConfig != nil}
	}
	return hosts
}

// postgresTimeout is how long a statement may take.
const postgresTimeout = 3 * time.Second

// postgresSession are the settings on which the code relies, whatever those of the server are.
func postgresSession() map[string]string {
	return map[string]string{
		"application_name":                    "shop",
		"client_encoding":                     "UTF8",
		"standard_conforming_strings":         "on", // by which arguments are quoted
		"bytea_output":                        "hex",
		"default_transaction_isolation":       "read committed",
		"timezone":                            "UTC",
		"lock_timeout":                        "2000",
		"statement_timeout":                   fmt.Sprint(postgresTimeout.Milliseconds()),
		"idle_in_transaction_session_timeout": fmt.Sprint(maxIdle.Milliseconds()),
	}
}

// lockByNumber uses an advisory lock of the database, which ends with its session.
func lockByNumber(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error) {
	const number = "(hashtext('shop:migrate'))"
	_, err = conn.ExecContext(ctx, "SELECT pg_advisory_lock"+number)
	return func(ctx context.Context, _ error) error {
		_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock"+number)
		return err
	}, err
}
