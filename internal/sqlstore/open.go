package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// asideConnections are one that looks at rows, two for the cluster, and those of Ping. A candidate that finds the row of
// the leader locked waits with one of the cluster.
const asideConnections = 5

// Open connects to the database that c.URL names. It fails, naming the address,
// when the database does not answer before ctx ends. Close the Store.
func Open(ctx context.Context, c Config) (*Store, error) {
	d, err := sqldb.Open(ctx, c.URL, c.Access)
	if err != nil {
		return nil, err
	}
	steps, bad := steps(d.Engine)
	shard, err := stock.ParseShard(d.Shard)
	if err := errors.Join(bad, err); err != nil {
		return nil, fmt.Errorf("open database %s: %w", d.Address, err)
	}
	n := cmp.Or(c.Connections, d.Connections)
	connect := func(to driver.Connector, limit int) *sql.DB {
		pool := traced(to, d.Dialect, c.Tracer)
		pool.SetMaxOpenConns(limit)
		pool.SetMaxIdleConns(max(2, limit))
		pool.SetConnMaxIdleTime(d.Idle)
		return pool
	}
	pool, aside, auditors := connect(d.Usual, n), connect(d.Single, asideConnections), connect(d.Unhurried, 0)
	db, err := gorm.Open(dialector{d.Dialect, pool}, &gorm.Config{
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", d.Address, err), pool.Close(), aside.Close(), auditors.Close())
	}
	s := &Store{
		db: db, pool: pool, aside: aside, auditors: auditors, engine: d, steps: steps, connect: connect, shard: shard, instance: c.Instance, timers: noTimers{},
		limits: new(sync.Map), rowWait: new(atomic.Int64), outcomeReads: make(chan struct{}, maxOutcomeReads),
		auditing: make(chan struct{}, 1), // it reads all there is
	}
	s.rowWait.Store(int64(longWait))
	if d.OneWriter {
		s.writers = make(chan struct{}, 1)
	} else {
		s.rows = bulkhead.New(ctx, max(2, n/4), s.lookAt)
	}
	for _, p := range c.Plugins {
		if err := db.Use(p); err != nil {
			return nil, errors.Join(fmt.Errorf("install %s: %w", p.Name(), err), s.Close())
		}
	}
	if err := sqldb.Await(ctx, func() error { return s.Ping(ctx) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
