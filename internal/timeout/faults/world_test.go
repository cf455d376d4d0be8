package faults_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout/sqltimers"
)

const (
	kind      = "order.expire"
	shelves   = 4           // rows that count what is reserved
	patience  = time.Minute // until what a test needs counts as lost
	lookback  = 20 * time.Millisecond
	scanDelay = 3 * time.Second // how late the overdue scan is: its grace, and the time between two
)

// tables are those of an application: what expires, what happened, and the stock.
var tables = []string{
	"CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY, shelf INT NOT NULL, due BIGINT NOT NULL, status VARCHAR(8) NOT NULL, INDEX (status))",
	"CREATE TABLE effects (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(64) NOT NULL, node VARCHAR(64) NOT NULL, at BIGINT NOT NULL, INDEX (id))",
	"CREATE TABLE shelves (shelf INT PRIMARY KEY, reserved BIGINT NOT NULL)",
	"INSERT INTO shelves VALUES (0, 0), (1, 0), (2, 0), (3, 0)",
}

// world is a database with orders, and a Redis of its own.
type world struct {
	t        *testing.T
	database string
	redis    *testbed.Redis
	address  string // of Redis
	db       *sql.DB
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	w := newWorldAt(t, server.URL())
	w.redis = server
	return w
}

func newWorldAt(t *testing.T, redis string) *world {
	t.Helper()
	database := testbedtest.Database(t)
	w := &world{t: t, database: database + "?isolation=" + testbedtest.IsolationVariable(t, database), address: redis}
	db, err := open(w.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w.db = db
	for _, statement := range append(sqltimers.Schema(sqldb.MariaDB()), tables...) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
	return w
}

// open connects to a database as the product does. The address names the variable of the isolation level.
func open(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{u.Query().Get("isolation"): "'READ-COMMITTED'", "innodb_lock_wait_timeout": "2"}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(12)
	db.SetMaxIdleConns(12)
	return db, nil
}

// number reads one.
func (w *world) number(query string) int {
	w.t.Helper()
	var n sql.NullInt64
	if err := w.db.QueryRowContext(w.t.Context(), query).Scan(&n); err != nil {
		w.t.Fatalf("%v\n%s", err, query)
	}
	return int(n.Int64)
}

// wait waits for a condition.
func (w *world) wait(what string, ok func() bool) {
	w.t.Helper()
	w.waitFor(patience, what, ok)
}

// waitFor waits for a condition that has a time of its own.
func (w *world) waitFor(d time.Duration, what string, ok func() bool) {
	w.t.Helper()
	if !within(w.t.Context(), d, ok) {
		w.t.Fatalf("waited for %v in vain until %s", d, what)
	}
}

func within(ctx context.Context, d time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookback):
		}
	}
	return true
}

// promised is how long something may take that costs d by design, on a machine that is busy with other tests and pauses
// for seconds. Look-ahead passes leave overdue timers to the overdue scan, so they hide no missing repair.
func promised(d time.Duration) time.Duration {
	return d + time.Duration(testbedtest.Size(45, 60))*time.Second
}

// settled waits until nothing is left to do, for as long as harm of this cost allows. Then placed orders must have
// expired once each, never early, and the stock must be balanced. It returns their firing delays.
func (w *world) settled(placed int, cost time.Duration) (late []time.Duration) {
	t := w.t
	t.Helper()
	within(t.Context(), promised(cost), func() bool {
		return w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'") == 0 && w.number("SELECT COUNT(*) FROM timeouts WHERE state = 'OPEN'") == 0
	})
	rows, err := w.db.QueryContext(t.Context(), "SELECT e.at - o.due FROM effects e JOIN orders o ON o.id = e.id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	early := 0
	for rows.Next() {
		var us int64
		if err := rows.Scan(&us); err != nil {
			t.Fatal(err)
		}
		if late = append(late, time.Duration(us)*time.Microsecond); us < 0 {
			early++
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(late)
	stored := w.number("SELECT COUNT(*) FROM orders")
	lost := w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'")
	double := w.number("SELECT COUNT(*) FROM (SELECT id FROM effects GROUP BY id HAVING COUNT(*) > 1) twice")
	reserved := w.number("SELECT SUM(ABS(reserved)) FROM shelves")
	left := w.number("SELECT COUNT(*) FROM timeouts WHERE state = 'OPEN'")
	t.Logf("orders %d, expired %d, lost %d, double %d, early %d; lateness p50 %v, p99 %v, max %v", stored, len(late), lost, double, early,
		percentile(late, 50), percentile(late, 99), percentile(late, 100))
	if stored != placed || len(late) != placed || lost != 0 || double != 0 || early != 0 {
		t.Errorf("want %d orders that have expired once each, the last within %v", placed, promised(cost))
	}
	if reserved != 0 || left != 0 {
		t.Errorf("%d units are reserved for nobody, and %d timers are left", reserved, left)
	}
	return late
}

// percentile returns the least of sorted that p percent do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*p+99)/100-1)].Round(100 * time.Microsecond)
}
