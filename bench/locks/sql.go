package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/glebarez/go-sqlite" // the driver of the product
	"github.com/go-sql-driver/mysql"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
)

// database is one with the table of sqllock.
type database struct {
	engine *sqldb.Engine
	open   func() (*sql.DB, error) // the connections of a process
	end    func() error
}

// Close ends the server, or deletes the file.
func (d *database) Close() error { return d.end() }

func startMariaDB(ctx context.Context) (*database, string, error) {
	server, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{})
	if err != nil {
		return nil, "", err
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", server.Addr(), testbed.DefaultDatabase
	c.ReadTimeout, c.WriteTimeout = 3*time.Second, 3*time.Second
	c.ClientFoundRows, c.InterpolateParams = true, true
	c.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'", "innodb_lock_wait_timeout": "2"}
	d := &database{engine: sqldb.MariaDB(), end: server.Close, open: func() (*sql.DB, error) {
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return nil, err
		}
		return limited(sql.OpenDB(connector), measure.PoolSize), nil
	}}
	version, err := d.create(ctx, "SELECT VERSION()", "CREATE TABLE commits (name VARBINARY(64) NOT NULL PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB")
	return d, "MariaDB " + version, err
}

// createSQLite makes a file with the settings of the product, which flushes each commit.
func createSQLite(ctx context.Context) (*database, string, error) {
	folder, err := os.MkdirTemp("", "locks")
	if err != nil {
		return nil, "", err
	}
	name := "file:" + filepath.Join(folder, "locks.db") + "?_txlock=immediate&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	d := &database{engine: sqldb.SQLite(), end: func() error { return os.RemoveAll(folder) }, open: func() (*sql.DB, error) {
		db, err := sql.Open("sqlite", name)
		if err != nil {
			return nil, err
		}
		return limited(db, 8), nil
	}}
	version, err := d.create(ctx, "SELECT sqlite_version()", "CREATE TABLE commits (name TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID")
	return d, "SQLite " + version, err
}

func limited(db *sql.DB, connections int) *sql.DB {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// create makes the tables, and asks for the version. After an error the database is closed.
func (d *database) create(ctx context.Context, version, commits string) (answer string, err error) {
	db, err := d.open()
	if err != nil {
		return "", errors.Join(err, d.Close())
	}
	defer db.Close()
	for _, statement := range append(sqllock.Schema(d.engine), commits) {
		_, failed := db.ExecContext(ctx, statement)
		err = cmp.Or(err, failed)
	}
	if err = cmp.Or(err, db.QueryRowContext(ctx, version).Scan(&answer)); err != nil {
		return "", errors.Join(err, d.Close())
	}
	return answer, nil
}

// engine is a database, with how many goroutines use it when there is no contention.
type engine struct {
	name string
	find func(*servers) (*database, error)
}

func engines() []engine {
	return []engine{
		{name: "MariaDB", find: func(on *servers) (*database, error) { return on.maria() }},
		{name: "SQLite", find: func(on *servers) (*database, error) { return on.sqlite() }},
	}
}

// callersOf are the numbers of goroutines that have a key each.
var callersOf = []int{1, 8, 32}

func (e engine) of(goroutines int) string { return e.name + " " + strconv.Itoa(goroutines) }

// bareCommit is the name of what the engine does without a lock.
const bareCommit = "no lock: one UPDATE"

// plan is what is measured on an engine.
func (e engine) plan(on *servers) []measure.Workload[sample] {
	lock := subject{name: oursThere, ours: true, open: e.client(sqlLock)}
	bare := subject{name: bareCommit, open: e.client(commit)}
	var all []measure.Workload[sample]
	for _, n := range callersOf {
		all = append(all, workload(on, e.of(n), 1, []subject{lock, bare}, load{clients: 1, goroutines: n}.run))
	}
	return append(all, workload(on, e.name+" "+contended, 1, []subject{lock}, load{clients: 8, goroutines: 4, shared: true}.run))
}

// client is a process with connections of its own.
func (e engine) client(open func(*sql.DB, *sqldb.Engine) (*client, error)) func(context.Context, *servers) (*client, error) {
	return func(_ context.Context, on *servers) (*client, error) {
		d, err := e.find(on)
		if err != nil {
			return nil, err
		}
		db, err := d.open()
		if err != nil {
			return nil, err
		}
		c, err := open(db, d.engine)
		return c.on(err, db.Close)
	}
}

func sqlLock(db *sql.DB, engine *sqldb.Engine) (*client, error) {
	l, err := sqllock.New(db, engine, sqllock.Config{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &client{acquire: leases(l), close: l.Close}, nil
}

// commit is an UPDATE of a row of the caller's own. As with the lock, one caller of a
// process at a time writes to a SQLite file.
func commit(db *sql.DB, engine *sqldb.Engine) (*client, error) {
	writers := make(chan struct{}, measure.PoolSize)
	if engine.OneWriter {
		writers = make(chan struct{}, 1)
	}
	write := func(ctx context.Context, statement, key string) (int64, error) {
		writers <- struct{}{}
		defer func() { <-writers }()
		result, err := db.ExecContext(ctx, statement, key)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	return &client{acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
		n, err := write(ctx, "UPDATE commits SET n = n + 1 WHERE name = ?", key)
		if err == nil && n == 0 { // the first time
			_, err = write(ctx, "INSERT INTO commits (name, n) VALUES (?, 1)", key)
		}
		return func(context.Context) error { return nil }, err
	}}, nil
}

// sqlTable has pairs alongside the commits that the engine makes of itself: a pair is two.
func (r *report) sqlTable() *measure.Table {
	t := &measure.Table{
		Title: "SQL: pairs of acquire and release per second",
		Header: []string{
			"", "per second", "lowest..highest", "acquire p50", "p99", "release p50", "most/least",
			"commits of an UPDATE per second", "commits of pairs to these",
		},
	}
	add := func(label string, ours, bare cell) {
		if len(ours) == 0 {
			return
		}
		t.Add(label, measure.Count(ours.Mid(rate)), ours.Span(rate), measure.Took(ours.Mid(p50)), measure.Took(ours.Mid(p99)), measure.Took(ours.Mid(gave50)),
			measure.Times(ours.Mid(spread)), measure.Count(bare.Mid(rate)), measure.Times(2*measure.Ratio(ours, bare, rate)))
	}
	for _, e := range engines() {
		for _, n := range callersOf {
			add(fmt.Sprintf("%s, a key each for %d", e.name, n), r.found.Cell(e.of(n), oursThere), r.found.Cell(e.of(n), bareCommit))
		}
		// On one key nothing runs alongside anything else.
		add(e.name+", one key: 8 clients with 4", r.found.Cell(e.name+" "+contended, oursThere), r.found.Cell(e.of(1), bareCommit))
	}
	return t
}
