package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// script is the statements that end a transaction, and whose results are not read. They take one round trip if the driver
// can send several statements at once, and otherwise one round trip each. The rows of a table are one statement. gorm is not
// used here, as it reads every column by reflection.
type script struct {
	texts []string
	args  []any
	ends  []int // of the arguments of each text
}

var _ timeout.Tx = (*script)(nil)

// add puts a statement at the end.
func (c *script) add(text string, args ...any) {
	c.texts, c.args = append(c.texts, text), append(c.args, args...)
	c.ends = append(c.ends, len(c.args))
}

// ExecContext implements [timeout.Tx]: timers are stored with the rest.
func (c *script) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	c.add(query, args...)
	return driver.RowsAffected(0), nil
}

// QueryContext implements [timeout.Tx].
func (c *script) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("sqlstore: a script has no results")
}

// run executes c in tx.
func (s *Store) run(tx *gorm.DB, c *script) error {
	if s.engine.Scripts && len(c.texts) > 0 {
		return tx.Exec(strings.Join(c.texts, "; "), c.args...).Error
	}
	from := 0
	for i, text := range c.texts {
		if err := tx.Exec(text, c.args[from:c.ends[i]]...).Error; err != nil {
			return err
		}
		from = c.ends[i]
	}
	return nil
}

// insert adds an INSERT of rows with args. into is the table and its columns, row is one row of parameters.
func (c *script) insert(into, row string, args []any) {
	if n := len(args) / strings.Count(row, "?"); n > 0 {
		c.add("INSERT INTO "+into+" VALUES "+row+strings.Repeat(", "+row, n-1), args...)
	}
}

// orders adds the insertion of orders and their lines.
func (c *script) orders(orders []order.Order) {
	rows, lines := make([]any, 0, 7*len(orders)), make([]any, 0, 3*len(orders))
	for _, o := range orders {
		rows = append(rows, o.ID, o.CustomerID, string(o.Status), o.PaymentID,
			o.CreatedAt.UnixMicro(), o.ExpiresAt.UnixMicro(), string(o.Reason))
		for _, it := range o.Items {
			lines = append(lines, o.ID, it.SKU, it.Quantity)
		}
	}
	c.insert("orders (id, customer_id, status, payment_id, created_at, expires_at, reason)", "(?, ?, ?, ?, ?, ?, ?)", rows)
	c.insert("order_lines (order_id, sku, quantity)", "(?, ?, ?)", lines)
}

// ledger adds the entries of a movement of all items of orders. The entries have the fencing tokens of the claims of their
// order; claims is nil if there are none.
func (c *script) ledger(s *Store, m stock.Movement, orders []order.Order, claims [][]stock.Claim, now int64) {
	args := make([]any, 0, 9*len(orders))
	for i, o := range orders {
		for _, it := range o.Items {
			var token int64
			if i < len(claims) {
				for _, claim := range claims[i] {
					if claim.SKU == it.SKU {
						token = int64(claim.Fence.Token)
					}
				}
			}
			onHand, reserved := m.Delta(it.Quantity)
			args = append(args, it.SKU, o.ID, string(m), it.Quantity, onHand, reserved, token, s.instance, now)
		}
	}
	c.insert("ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at)", "(?, ?, ?, ?, ?, ?, ?, ?, ?)", args)
}

// entry adds the ledger entry of a movement of one SKU that belongs to no order.
func (c *script) entry(s *Store, m stock.Movement, sku string, quantity, now int64, f dlock.Fence) {
	none := order.Order{Items: []order.Item{{SKU: sku, Quantity: quantity}}}
	c.ledger(s, m, []order.Order{none}, [][]stock.Claim{{{SKU: sku, Fence: f}}}, now)
}

// answers adds the insertion of answers. It comes last: a duplicate request waits at its key until
// the outcome is known, and keeps its rows locked meanwhile. Keys are in ascending order, so that
// two transactions with the same keys do not wait for each other.
func (c *script) answers(s *Store, answers []answer) error {
	slices.SortFunc(answers, func(a, b answer) int {
		x, y := a.once.Scope, b.once.Scope
		return cmp.Or(cmp.Compare(x.Customer, y.Customer), cmp.Compare(x.Route, y.Route), cmp.Compare(x.Key, y.Key))
	})
	args := make([]any, 0, 6*len(answers))
	for _, a := range answers {
		if err := fits(a.once.Scope); err != nil {
			return err
		}
		body := a.Body
		if body == nil {
			body = []byte{} // nil would be NULL
		}
		args = append(args, a.once.Scope.Customer, a.once.Scope.Route, a.once.Scope.Key, a.once.Hash[:], a.Status, body)
	}
	c.insert("idempotency_keys (customer_id, route, idem_key, hash, status, location, body, created_at)",
		"(?, ?, ?, ?, ?, '', ?, "+s.engine.Now+")", args)
	return nil
}
