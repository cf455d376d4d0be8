package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// plugin is a [gorm.Plugin].
type plugin struct {
	name       string
	initialize func(db *gorm.DB) error
}

func (p plugin) Name() string { return p.name }

func (p plugin) Initialize(db *gorm.DB) error { return p.initialize(db) }

// StopBefore returns a plugin that calls f before the first transaction of a store begins. naive, optimistic and the unfenced strategies have
// read the level then, so a lab stops an order there between its read and its write.
func StopBefore(f func()) gorm.Plugin { return StopAround(f, func() {}) }

// StopAround is StopBefore(begin) and calls commit before the first COMMIT of a store. The transaction has written then, and no other
// sees it yet.
func StopAround(begin, commit func()) gorm.Plugin {
	return plugin{"stop around the first transaction", func(db *gorm.DB) error {
		pool, ok := db.ConnPool.(*sql.DB)
		if !ok {
			return fmt.Errorf("no pool of connections but %T", db.ConnPool)
		}
		db.ConnPool = stopping{pool, sync.OnceFunc(begin), sync.OnceFunc(commit)}
		db.Statement.ConnPool = db.ConnPool
		return nil
	}}
}

// stopping is a pool whose transactions begin and end after a stop.
type stopping struct {
	*sql.DB

	begin, commit func()
}

// BeginTx implements [gorm.ConnPoolBeginner].
func (s stopping) BeginTx(ctx context.Context, options *sql.TxOptions) (gorm.ConnPool, error) {
	s.begin()
	tx, err := s.DB.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &stoppingTx{tx, s.commit}, nil
}

// stoppingTx is used by its pointer, as gorm wants it.
type stoppingTx struct {
	*sql.Tx

	commit func()
}

// Commit implements [gorm.TxCommitter].
func (t *stoppingTx) Commit() error {
	t.commit()
	return t.Tx.Commit()
}

// StopBeforeStatement returns a plugin that calls f before the first statement of a store that contains part. A lab stops an order there
// within its transaction, which has locked its row.
func StopBeforeStatement(part string, f func()) gorm.Plugin {
	stop := sync.OnceFunc(f)
	return plugin{"stop before a statement", func(db *gorm.DB) error {
		see := func(tx *gorm.DB) {
			if strings.Contains(tx.Statement.SQL.String(), part) {
				stop()
			}
		}
		return errors.Join(db.Callback().Raw().Before("gorm:raw").Register("stop", see),
			db.Callback().Row().Before("gorm:row").Register("stop", see))
	}}
}
