package blackbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
)

// gate is a gorm plugin that stops a store once: it closes reached and continues when opened is closed. Exactly one of
// the other fields says where.
type gate struct {
	before string // the first statement that contains this
	second string // the second statement that contains this
	after  string // the first insert into this table, when it is done

	reached, opened chan struct{}
	done            bool
	passed          int // statements that contained second
}

// locksSKU is in the statement that locks the row of a SKU, on MariaDB.
const locksSKU = "FROM skus WHERE sku = ? FOR UPDATE"

func newGate(g gate) *gate {
	g.reached, g.opened = make(chan struct{}), make(chan struct{})
	return &g
}

func (g *gate) Name() string { return "gate" }

func (g *gate) Initialize(db *gorm.DB) error {
	look := func(tx *gorm.DB) {
		statement := tx.Statement.SQL.String()
		if g.second != "" && strings.Contains(statement, g.second) {
			if g.passed++; g.passed == 2 {
				g.stop(tx)
			}
		}
		if g.before != "" && strings.Contains(statement, g.before) {
			g.stop(tx)
		}
	}
	err := errors.Join(db.Callback().Raw().Before("gorm:raw").Register("gate", look),
		db.Callback().Row().Before("gorm:row").Register("gate", look))
	if err != nil {
		return err
	}
	return db.Callback().Raw().After("gorm:raw").Register("gate:after", func(tx *gorm.DB) {
		if g.after != "" && strings.Contains(tx.Statement.SQL.String(), "INSERT INTO "+g.after+" ") {
			g.stop(tx)
		}
	})
}

// stop has the server let the transaction stand still. On a busy machine it does so for longer than the server usually allows.
func (g *gate) stop(tx *gorm.DB) {
	if !g.done {
		g.done = true
		tx.AddError(standStill(tx.Session(&gorm.Session{NewDB: true})))
		close(g.reached)
		<-g.opened
	}
}

// wait waits for c under a deadline.
func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("waited a minute for %s", what)
	}
}
