package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/storeurl"
)

// hostTimeout is how long a host of several, and one of PostgreSQL, has to accept a connection. One of MySQL has as long to accept its packets.
const hostTimeout = 2 * time.Second

// The settings of a session that needs a writer include this variable, and a read may. A read-only server refuses it with error 1690: a
// number that is too large. So the question costs no round trip. Some versions have words for the values of read_only.
const (
	mayWrite     = "@may_write"
	mayWriteOnce = "18446744073709551615 + IF(CONCAT(@@read_only) IN ('0', 'OFF'), 0, 1)"
	outOfRange   = 1690
)

// host is a server of those in a URL.
type host struct {
	driver.Connector

	address string
	secure  bool // with TLS
}

// connect opens a connection. If it needs a writer, a server that is read-only is an error of class [ReadOnly]. If there are several hosts,
// the time is limited.
func (h host) connect(ctx context.Context, several bool) (driver.Conn, error) {
	limited, cancel := ctx, func() {}
	if several {
		limited, cancel = context.WithTimeout(ctx, hostTimeout)
	}
	defer cancel()
	conn, err := h.Connect(limited)
	if readOnly(err) {
		return nil, &mysqldriver.MySQLError{Number: 1290, SQLState: [5]byte([]byte("HY000")), Message: "the server is read-only"}
	}
	if several && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // which is not the caller's
		err = os.ErrDeadlineExceeded
	}
	return conn, err
}

// readOnly reports whether a server has refused [mayWrite], as it is read-only.
func readOnly(err error) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && e.Number == outOfRange
}

// parseServers returns what the URL of one or more servers says, and the URL without secrets. No error repeats a part of
// rawURL that may be one of a password, in which an unescaped character moves it anywhere.
func parseServers(rawURL, scheme, port string) (u storeurl.URL, address string, err error) {
	u, err = storeurl.Parse(rawURL, port)
	switch {
	case err != nil && !errors.Is(err, storeurl.ErrForm):
		return u, "", fmt.Errorf("database: %w", err)
	case err == nil && u.Path != "" && len(u.Params) > 0 && !strings.Contains(u.Params.Encode(), "%40"): // an @ ends a password that is not escaped
		return u, "", fmt.Errorf("database: unknown parameter %s: want tls=true, tls-ca=FILE, or tls-cert=FILE and tls-key=FILE", slices.Min(slices.Collect(maps.Keys(u.Params))))
	case err != nil || u.Path == "" || strings.Contains(u.Path, "/") || len(u.Params) > 0 || u.User == "" && scheme == "postgres":
		return u, "", fmt.Errorf("database: want %s://USER:PASSWORD@HOST:PORT/DATABASE, in PASSWORD %%2F for / and so on for ? # %%; several hosts are HOST:PORT,HOST:PORT", scheme)
	}
	for i, host := range u.Hosts {
		if slices.Contains(u.Hosts[:i], host) {
			return u, "", fmt.Errorf("database: the host %s is in the list twice", host)
		}
	}
	return u, scheme + "://" + strings.Join(u.Hosts, ",") + "/" + u.Path, nil
}

// hostsOf returns the hosts with connections as c describes them.
func hostsOf(c *mysqldriver.Config, addresses []string) ([]host, error) {
	hosts := make([]host, 0, len(addresses))
	for _, address := range addresses {
		c.Addr = address
		connector, err := mysqldriver.NewConnector(c) // which copies c
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host{connector, address, c.TLS != nil})
	}
	return hosts, nil
}

// refusal adds the error of h to those of other hosts. What to change follows once, after the errors.
func (h host) refusal(others, err error) error {
	before, now := hinted(others), hinted(err)
	all := fmt.Errorf("%s: %w", h.address, now.error)
	if others != nil {
		all = fmt.Errorf("%w; %w", before.error, all)
	}
	hint := before.hint
	if !strings.Contains(hint, now.hint) {
		hint = strings.TrimPrefix(hint+"; "+now.hint, "; ")
	}
	return withHint(all, hint)
}

// engineOf asks all hosts for their engine. One that answers is enough; those that do must agree.
func engineOf(ctx context.Context, hosts []host) (found *Engine, err error) {
	if len(hosts) == 1 {
		return hosts[0].engine(ctx, false)
	}
	at := ""
	for _, h := range hosts {
		e, failed := h.engine(ctx, true)
		_, wrong := errors.AsType[settingError](failed)
		switch {
		case wrong:
			return nil, h.refusal(nil, failed)
		case failed != nil:
			err = h.refusal(err, failed)
		case found == nil:
			found, at = e, h.address
		case e.Name != found.Name:
			return nil, fmt.Errorf("%s is %s, and %s is %s: all hosts must have one engine", at, found.Name, h.address, e.Name)
		}
	}
	if found != nil {
		err = nil
	}
	return found, err
}

// Host is a server of several in a URL.
type Host struct {
	Address string
	Role    string // writer or read-only
	Err     error  // why it accepts no connection; it has no role then
}

// Hosts asks all servers of a URL for their roles, at once and for up to 2 s. A URL with one server, or of a file, has none.
func Hosts(ctx context.Context, rawURL string) []Host {
	var hosts []host
	if strings.HasPrefix(rawURL, "postgres:") {
		if configs, addresses, _, err := parsePostgres(rawURL); err == nil {
			hosts = postgresHosts(configs, addresses, true, postgresTimeout, nil)
		}
	} else if c, addresses, _, err := parseMySQL(rawURL); err == nil {
		c.Params = map[string]string{mayWrite: mayWriteOnce}
		if hosts, err = hostsOf(c, addresses); err != nil {
			return nil
		}
	}
	if len(hosts) < 2 {
		return nil
	}
	return rolesOf(ctx, hosts)
}

// rolesOf asks all hosts for their roles, at once.
func rolesOf(ctx context.Context, hosts []host) []Host {
	found := make([]Host, len(hosts))
	var asked sync.WaitGroup
	for i, h := range hosts {
		asked.Go(func() {
			conn, err := h.connect(ctx, true)
			switch {
			case err == nil:
				found[i] = Host{h.address, "writer", conn.Close()}
			case Is(err, ReadOnly):
				found[i] = Host{h.address, "read-only", nil}
			default:
				found[i] = Host{h.address, "", explained(err, h.secure)}
			}
		})
	}
	asked.Wait()
	return found
}

// settingError says that a server works, and has settings or rights with which the code would not.
type settingError string

// Error implements error.
func (e settingError) Error() string { return string(e) }

// engine asks a host for its engine, and for the settings that no session can change. MariaDB lets some users write to a
// server that is read-only. They may not notice a switch-over, so they are refused if there are several hosts.
func (h host) engine(ctx context.Context, several bool) (e *Engine, err error) {
	db := sql.OpenDB(h)
	defer func() { err = errors.Join(err, db.Close()) }()
	is := make(map[string]string)
	if e, err = vitess(ctx, db); err != nil {
		return nil, explained(err, h.secure)
	} else if e != nil {
		return e, nil
	}
	if err := readSettings(ctx, db, mysqlVariables, is); err != nil {
		return nil, explained(err, h.secure)
	}
	if is["log_bin"] == "ON" && is["binlog_format"] == "STATEMENT" {
		return nil, settingError("the server has binlog_format=STATEMENT, and so refuses to write: set binlog_format=ROW")
	}
	if is["group_replication_single_primary_mode"] == "OFF" { // a row lock of one member does not block another
		return nil, settingError("Group Replication has several primaries, which would sell a unit twice: SELECT group_replication_switch_to_single_primary_mode()")
	}
	switch {
	case is["wsrep_on"] == "ON":
		e = galera()
	case strings.Contains(is["version"], "MariaDB"):
		e = MariaDB()
	default:
		return MySQL(), nil // which has super_read_only
	}
	if several && err == nil {
		err = refuseAdmin(ctx, db)
	}
	return e, err
}

// admin are the grants of users whom MariaDB lets write to a server that is read-only. SHOW GRANTS lists those of default roles, too.
var admin = regexp.MustCompile(`^GRANT (.*, )?(ALL PRIVILEGES|SUPER|READ[_ ]ONLY ADMIN)(,.*)? ON \*\.\* TO `)

func refuseAdmin(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SHOW GRANTS")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			return err
		}
		if admin.MatchString(grant) {
			return settingError("the user has SUPER or READ_ONLY ADMIN, and would write to a server that is read-only: take a user without these rights")
		}
	}
	return rows.Err()
}
