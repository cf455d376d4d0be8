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

// StopBefore returns a plugin that calls f before the first transaction of a store begins. naive, optimistic and the unfenced strategies have
// read the level then, so a lab stops an order there between its read and its write.
func StopBefore(f func()) gorm.Plugin { return StopAround(f, func() {}) }

// StopAround is StopBefore(begin) and calls commit before the first COMMIT of a store. The transaction has written then, and no other
// sees it yet.
func StopAround(begin, commit func()) gorm.Plugin { return &stop{begin: begin, commit: commit} }

type stop struct {
	begin, commit    func()
	began, committed sync.Once
}

func (s *stop) Name() string { return "stop around the first transaction" }

func (s *stop) Initialize(db *gorm.DB) error {
	pool, ok := db.ConnPool.(*sql.DB)
	if !ok {
		return fmt.Errorf("no pool of connections but %T", db.ConnPool)
	}
	db.ConnPool = stopping{pool, s}
	db.Statement.ConnPool = db.ConnPool
	return nil
}

// stopping is a pool whose transactions begin and end after a stop.
type stopping struct {
	*sql.DB

	stop *stop
}

// BeginTx implements [gorm.ConnPoolBeginner].
func (s stopping) BeginTx(ctx context.Context, options *sql.TxOptions) (gorm.ConnPool, error) {
	s.stop.began.Do(s.stop.begin)
	tx, err := s.DB.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &stoppingTx{tx, s.stop}, nil
}

// stoppingTx is used by its pointer, as gorm wants it.
type stoppingTx struct {
	*sql.Tx

	stop *stop
}

// Commit implements [gorm.TxCommitter].
func (t *stoppingTx) Commit() error {
	t.stop.committed.Do(t.stop.commit)
	return t.Tx.Commit()
}

// StopBeforeStatement returns a plugin that calls f before the first statement of a store that contains part. A lab stops an order there
// within its transaction, which has locked its row.
func StopBeforeStatement(part string, f func()) gorm.Plugin { return &stopStatement{part: part, f: f} }

type stopStatement struct {
	part string
	f    func()
	once sync.Once
}

func (s *stopStatement) Name() string { return "stop before a statement" }

func (s *stopStatement) Initialize(db *gorm.DB) error {
	see := func(tx *gorm.DB) {
		if strings.Contains(tx.Statement.SQL.String(), s.part) {
			s.once.Do(s.f)
		}
	}
	return errors.Join(db.Callback().Raw().Before("gorm:raw").Register("stop", see), db.Callback().Row().Before("gorm:row").Register("stop", see))
}
