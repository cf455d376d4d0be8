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
func StopBefore(f func()) gorm.Plugin { return &stop{f: f} }

type stop struct {
	f    func()
	once sync.Once
}

func (s *stop) Name() string { return "stop before the first transaction" }

func (s *stop) Initialize(db *gorm.DB) error {
	pool, ok := db.ConnPool.(*sql.DB)
	if !ok {
		return fmt.Errorf("no pool of connections but %T", db.ConnPool)
	}
	db.ConnPool = stopping{pool, s}
	db.Statement.ConnPool = db.ConnPool
	return nil
}

// stopping is a pool whose transactions begin after a stop.
type stopping struct {
	*sql.DB

	stop *stop
}

// BeginTx implements [gorm.TxBeginner].
func (s stopping) BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error) {
	s.stop.once.Do(s.stop.f)
	return s.DB.BeginTx(ctx, options)
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
