package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// commits is a gorm plugin that has the server roll each transaction back that has written, and answer its COMMIT with an
// error.
type commits struct {
	err error

	*sql.DB
	n int
}

func (c *commits) Name() string { return "refused commits" }

func (c *commits) Initialize(db *gorm.DB) error {
	c.DB = db.ConnPool.(*sql.DB) //nolint:forcetypeassert // as in the product
	db.ConnPool, db.Statement.ConnPool = c, c
	return nil
}

func (c *commits) BeginTx(ctx context.Context, options *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := c.DB.BeginTx(ctx, options)
	return &refusedTx{Tx: tx, of: c}, err
}

func (c *commits) GetDBConn() (*sql.DB, error) { return c.DB, nil }

type refusedTx struct {
	*sql.Tx

	of    *commits
	wrote bool
}

func (t *refusedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	t.wrote = true
	return t.Tx.ExecContext(ctx, query, args...)
}

func (t *refusedTx) Commit() error {
	if !t.wrote {
		return t.Tx.Commit()
	}
	t.of.n++
	return errors.Join(t.Rollback(), t.of.err)
}

// A server answers COMMIT with an error that has no class. Perhaps it has committed, so the store looks. It has not, so
// the order is refused with the number of the error, and is not tried again.
func TestCommitErrorWithoutClassRefusesTheOrder(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	create(t, open(t, url, "one"), "a", "conditional", 10)
	refused := &commits{err: &mysql.MySQLError{Number: 1598, Message: "Binary logging not possible"}}
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "two", Plugins: []gorm.Plugin{refused}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := request(1, "a")
	err = s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r))
	if err == nil || errors.Is(err, order.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "Error 1598") || r.Uncertain {
		t.Errorf("%v; uncertain: %v", err, r.Uncertain)
	}
	if refused.n != 1 {
		t.Errorf("%d transactions, want one", refused.n)
	}
}

// A user who may not write is refused at once, and with the reason.
func TestMissingRightRefusesAtOnce(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	create(t, open(t, server.URL(), "one"), "a", "conditional", 10)
	execAt(t, server, "CREATE USER reader", "GRANT SELECT ON shop.* TO reader")
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: fmt.Sprintf("mysql://reader@%s/%s", server.Addr(), testbed.DefaultDatabase)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	testbedtest.Steady(t, func(t testing.TB) {
		began, r := time.Now(), request(1, "a")
		err := s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r))
		if !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, order.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "Error 1142") {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the refusal took %v", took)
		}
	})
}
