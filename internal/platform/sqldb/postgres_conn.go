package sqldb

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/shop/internal/platform/storeurl"
)

// postgresConnector opens connections to one server. They send text alone, with all arguments in it: a query may be several
// statements, which take one round trip.
type postgresConnector struct {
	config  *pgconn.Config
	timeout time.Duration // of a statement; 0: none
	writer  bool          // a standby is refused
}

// postgresConfig returns how to connect to a host, without the settings of the session. The URL alone says that: pgconn also reads
// variables of the environment, which this program does not use, so they are unset.
func postgresConfig(u storeurl.URL, address string) (*pgconn.Config, error) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			if err := os.Unsetenv(name); err != nil {
				return nil, err
			}
		}
	}
	c, err := pgconn.ParseConfig("host=localhost sslmode=disable")
	if err != nil {
		return nil, err
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	c.Host, c.Port, c.User, c.Password, c.Database = name, uint16(number), u.User, u.Password, u.Path
	c.Fallbacks, c.ValidateConnect, c.ConnectTimeout = nil, nil, hostTimeout
	if c.TLSConfig = u.TLS; u.TLS != nil {
		c.TLSConfig = u.TLS.Clone()
		c.TLSConfig.ServerName = name
	}
	return c, err
}

// Connect implements [driver.Connector].
func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	config, dial, connected := c.config.Copy(), c.config.DialFunc, new(atomic.Bool)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() { // to cancel a statement. A COMMIT that waits for its standby would then succeed without it
			return nil, net.ErrClosed
		}
		return dial(ctx, network, address)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, oneLineError{err}
	}
	connected.Store(true)
	version := 0
	_, _ = fmt.Sscan(conn.ParameterStatus("server_version"), &version) // up to its dot; no number is too old
	switch {
	case version < 14: // which do not say whether they are standbys
		err = settingError("the server is PostgreSQL " + conn.ParameterStatus("server_version") + ": want 14 or later")
	case conn.ParameterStatus("server_encoding") != "UTF8":
		err = settingError("the database has the encoding " + conn.ParameterStatus("server_encoding") + ": create it with ENCODING 'UTF8'")
	case c.writer && (conn.ParameterStatus("in_hot_standby") == "on" || conn.ParameterStatus("default_transaction_read_only") == "on"):
		err = &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "the server is read-only"}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &postgresConn{conn, c.timeout}, nil
}

// Driver implements [driver.Connector].
func (postgresConnector) Driver() driver.Driver { return postgresDriver{} }

// postgresDriver has no data source names.
type postgresDriver struct{}

// Open implements [driver.Driver].
func (postgresDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// oneLineError is an error whose text has several lines.
type oneLineError struct{ error }

// Error implements error.
func (e oneLineError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n\t", " ") }

// Unwrap returns the error.
func (e oneLineError) Unwrap() error { return e.error }

// postgresConn is a connection of a postgresConnector.
type postgresConn struct {
	conn    *pgconn.PgConn
	timeout time.Duration
}

var _ serverSession = (*postgresConn)(nil)

// run sends a query, and returns the results of its statements.
func (c *postgresConn) run(ctx context.Context, query string, args []driver.NamedValue) ([]*pgconn.Result, error) {
	text, err := interpolate(query, args)
	if err != nil {
		return nil, err
	}
	limited, cancel := ctx, func() {}
	if c.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, c.timeout)
	}
	defer cancel()
	results, err := c.conn.Exec(limited, text).ReadAll()
	_, answered := postgresClass(err)
	switch {
	case err == nil, answered:
	case ctx.Err() != nil:
		err = ctx.Err()
	case limited.Err() != nil:
		err = fmt.Errorf("no answer within %v: %w", c.timeout, os.ErrDeadlineExceeded)
	case pgconn.SafeToRetry(err): // nothing was sent
		err = driver.ErrBadConn
	case c.conn.IsClosed():
		err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return results, err
}

// ExecContext implements [driver.ExecerContext].
func (c *postgresConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	commit := query == "COMMIT"
	if commit { // a COMMIT that the server ends while it waits for its standby succeeds
		query = "SET LOCAL statement_timeout = 0; COMMIT"
	}
	results, err := c.run(ctx, query, args)
	var changed int64
	for _, r := range results {
		changed += r.CommandTag.RowsAffected()
	}
	if commit && err == nil && results[len(results)-1].CommandTag.String() != "COMMIT" {
		err = &pgconn.PgError{Severity: "ERROR", Code: "25P02", Message: "the transaction was rolled back"}
	}
	return driver.RowsAffected(changed), err
}

// QueryContext implements [driver.QueryerContext]. It returns the rows of the last statement that has some.
func (c *postgresConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	results, err := c.run(ctx, query, args)
	if err != nil {
		return nil, err
	}
	rows := new(postgresRows)
	for _, r := range results {
		if len(r.FieldDescriptions) > 0 {
			rows.Result = r
		}
	}
	if rows.Result == nil {
		rows.Result = new(pgconn.Result)
	}
	return rows, nil
}

// BeginTx implements [driver.ConnBeginTx].
func (c *postgresConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return nil, errors.ErrUnsupported
	}
	_, err := c.run(ctx, "START TRANSACTION", nil)
	return nil, err
}

// Begin implements [driver.Conn].
func (*postgresConn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

// Prepare implements [driver.Conn].
func (*postgresConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// PrepareContext implements [driver.ConnPrepareContext].
func (*postgresConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return nil, errors.ErrUnsupported
}

// Ping implements [driver.Pinger].
func (c *postgresConn) Ping(ctx context.Context) error {
	_, err := c.run(ctx, "-- ping", nil)
	return err
}

// IsValid implements [driver.Validator]. A connection whose transaction has no end is none.
func (c *postgresConn) IsValid() bool { return !c.conn.IsClosed() && c.conn.TxStatus() == 'I' }

// ResetSession implements [driver.SessionResetter]. A server says why it ends a session, so text that waits is as bad as an
// end.
func (c *postgresConn) ResetSession(context.Context) error {
	raw := c.conn.Conn()
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if c.conn.IsClosed() || !silent(raw) {
		return driver.ErrBadConn
	}
	return nil
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (*postgresConn) CheckNamedValue(v *driver.NamedValue) (err error) {
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

// Close implements [driver.Conn].
func (c *postgresConn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.conn.Close(ctx)
}

// postgresRows are the rows of a result.
type postgresRows struct {
	*pgconn.Result

	next int
}

// Columns implements [driver.Rows].
func (r *postgresRows) Columns() []string {
	names := make([]string, len(r.FieldDescriptions))
	for i, f := range r.FieldDescriptions {
		names[i] = f.Name
	}
	return names
}

// Close implements [driver.Rows].
func (*postgresRows) Close() error { return nil }

// Next implements [driver.Rows].
func (r *postgresRows) Next(to []driver.Value) (err error) {
	if r.next == len(r.Rows) {
		return io.EOF
	}
	for i, text := range r.Rows[r.next] {
		if to[i] = nil; text == nil {
			continue
		}
		switch r.FieldDescriptions[i].DataTypeOID {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
			to[i], err = strconv.ParseInt(string(text), 10, 64)
		case pgtype.BoolOID:
			to[i] = string(text) == "t"
		case pgtype.ByteaOID:
			to[i], err = hex.DecodeString(strings.TrimPrefix(string(text), `\x`))
		default:
			to[i] = string(text)
		}
		if err != nil {
			return err
		}
	}
	r.next++
	return nil
}

// interpolate puts the arguments into a query, for its question marks.
func interpolate(query string, args []driver.NamedValue) (string, error) {
	parts := strings.Split(query, "?")
	if len(parts) != len(args)+1 {
		return "", fmt.Errorf("sqldb: %d arguments for %d places", len(args), len(parts)-1)
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for i, a := range args {
		switch v := a.Value.(type) {
		case nil:
			b.WriteString("NULL")
		case int64:
			if v < 0 { // two signs would begin a comment
				fmt.Fprintf(&b, "(%d)", v)
			} else {
				b.WriteString(strconv.FormatInt(v, 10))
			}
		case bool: // columns have numbers
			b.WriteString(map[bool]string{false: "0", true: "1"}[v])
		case string:
			if strings.Contains(v, "\x00") {
				return "", &pgconn.PgError{Severity: "ERROR", Code: "22021", Message: "a text has a zero byte"}
			}
			b.WriteString("'" + strings.ReplaceAll(v, "'", "''") + "'")
		case []byte:
			b.WriteString(`'\x` + hex.EncodeToString(v) + "'")
		default:
			return "", fmt.Errorf("sqldb: no argument may be a %T", v)
		}
		b.WriteString(parts[i+1])
	}
	return b.String(), nil
}
