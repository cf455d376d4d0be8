package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
)

// Open connects to the database that c.URL names. It fails, naming the address,
// when the database does not answer before ctx ends. Close the Store.
func Open(ctx context.Context, c Config) (*Store, error) {
	d, address, err := parse(ctx, c)
	if err != nil {
		return nil, err
	}
	var db *gorm.DB
	err = patiently(ctx, func() (err error) { // the driver for SQLite asks for the version
		engine, err := d.open()
		if err != nil {
			return err
		}
		db, err = gorm.Open(engine, &gorm.Config{
			Logger:                 logger.Discard,
			SkipDefaultTransaction: true,
			DisableAutomaticPing:   true,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", address, opening(err))
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", address, err)
	}
	n := cmp.Or(c.Connections, d.connections)
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	pool.SetConnMaxIdleTime(d.idle)
	aside, err := d.pool()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", address, err), pool.Close())
	}
	aside.SetMaxOpenConns(4) // one looks at rows, one is for the cluster, the others are for Ping
	aside.SetConnMaxIdleTime(d.idle)
	s := &Store{
		db: db, pool: pool, aside: aside, dialect: d, instance: c.Instance, address: address, timers: noTimers{},
		limits: new(sync.Map), outcomeReads: make(chan struct{}, maxOutcomeReads),
		auditing: make(chan struct{}, 1), // it reads all there is
	}
	if d.unhurried != nil {
		s.auditors = d.unhurried()
		s.auditors.SetConnMaxIdleTime(d.idle)
	}
	if d.writers == 0 {
		s.rows = bulkhead.New(ctx, max(2, n/4), s.lookAt)
	}
	s.lookUps = &lookUps{db: db}
	if d.writers > 0 {
		s.writers = make(chan struct{}, d.writers)
	}
	for _, p := range c.Plugins {
		if err := db.Use(p); err != nil {
			return nil, errors.Join(fmt.Errorf("install %s: %w", p.Name(), err), s.Close())
		}
	}
	if err := patiently(ctx, func() error { return s.Ping(ctx) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// patiently waits until the database answers f. A new SQLite file is busy while another process switches it to WAL
// mode, for which the busy timeout does not wait. A server that answers too late, as on a machine that is paused for
// some seconds, gets the request again. A server that refuses does not.
func patiently(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		again := sqldb.Transient(err) || late(err) && try < sqldb.MaxRetries
		if !again || !backoff.Jitter(ctx, 10*time.Millisecond) {
			return err
		}
	}
}

// late reports whether an answer has not come in time.
func late(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, driver.ErrInvalidConn)
}

// ValidURL reports what is wrong with the form of a database URL, without
// asking whether anything is there.
func ValidURL(url string) (err error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		_, _, err = sqliteDialect(rest, AccessCreate, nil)
	case "mysql":
		_, _, err = parseMySQL(url)
	default:
		err = unknownEngine()
	}
	return err
}

// unknownEngine does not repeat the URL, which may hold a password.
func unknownEngine() error {
	return errors.New("database: want sqlite:FILE or mysql://USER:PASSWORD@HOST:PORT/DATABASE")
}

// parse chooses the engine that c.URL names, and returns its address without secrets.
func parse(ctx context.Context, c Config) (d dialect, address string, err error) {
	switch scheme, rest, _ := strings.Cut(c.URL, ":"); scheme {
	case "sqlite":
		d, address, err = sqliteDialect(rest, c.Access, c.Tracer)
		if err != nil {
			return d, address, err
		}
		if err = c.Access.check(rest); err != nil {
			err = fmt.Errorf("open database %s: %w", address, err)
		}
		return d, address, err
	case "mysql":
		return mysqlDialect(ctx, c.URL, c.Tracer)
	}
	return dialect{}, "", unknownEngine()
}
