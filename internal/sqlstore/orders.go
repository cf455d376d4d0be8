package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
)

// Order implements [order.Store].
func (s *Store) Order(ctx context.Context, id, owner string) (order.Order, error) {
	db, t := s.db.WithContext(ctx), order.Target{ID: id, Owner: owner}
	row, err := s.orderRow(db, t, "SELECT o.*, "+s.engine.Now+" AS read_at FROM "+oneOrderOf)
	if err == nil && row.late() {
		rows := []orderRow{row}
		err = s.decided(ctx, rows)
		row = rows[0]
	}
	var o order.Order
	if err == nil {
		o, err = s.withLines(db, row)
	}
	if err != nil {
		return order.Order{}, s.translate(ctx, err)
	}
	return o, nil
}

// decided reads those of the rows again that are late. A transaction that has changed the order in time may not have
// committed yet, so decided waits for it. Otherwise an order could read as expired and be paid a moment later.
// Transactions that lock the row afterwards find that it is late.
func (s *Store) decided(ctx context.Context, rows []orderRow) error {
	late := make(map[string]*orderRow)
	for i := range rows {
		if rows[i].late() {
			late[rows[i].ID] = &rows[i]
		}
	}
	if len(late) == 0 {
		return nil
	}
	return s.inTx(ctx, func(tx *gorm.DB) error {
		found, err := s.lateRows(tx, maps.Keys(late))
		for _, r := range found {
			*late[r.ID] = r
		}
		if err == nil && len(found) < len(late) {
			err = errHeld
		}
		return err
	})
}

// lateRows returns the rows of the orders as nobody can change them any more if they are late, without those that another
// transaction is changing.
// It locks them by their ids, as everybody does: by another index it would meet those who change them half-way.
func (s *Store) lateRows(tx *gorm.DB, ids iter.Seq[string]) (rows []orderRow, err error) {
	for some := range slices.Chunk(slices.Sorted(ids), maxRows) {
		var found []orderRow
		err := tx.Raw(s.engine.Locked("o.*", "orders o"+s.engine.ByKey+" WHERE id IN ?"+s.engine.ShareFree), some).Scan(&found).Error
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// oneOrderOf is the order with an id, if it is of a customer; all are of an empty one.
const oneOrderOf = "orders o WHERE id = ? AND ? IN ('', customer_id)"

// orderRow reads the row of an order through db, which may be a transaction, and the time. A query that locks keeps others
// from changing the order until the transaction ends.
func (s *Store) orderRow(db *gorm.DB, t order.Target, query string) (row orderRow, err error) {
	r := db.Raw(query, t.ID, t.Owner).Scan(&row)
	if r.Error == nil && r.RowsAffected == 0 {
		return orderRow{}, fmt.Errorf("%w %q", order.ErrNotFound, t.ID)
	}
	return row, r.Error
}

// withLines returns the order that row is, with its lines.
func (s *Store) withLines(db *gorm.DB, row orderRow) (order.Order, error) {
	lines, err := s.linesOf(db, row.ID)
	return row.order(lines[row.ID]), err
}

// lockOrder locks an order until the transaction ends, and reads it as it is then. It fails with errHeld if another
// transaction has the order. The transaction decides about the order by that one reading of the clock: row.ReadAt.
func (s *Store) lockOrder(tx *gorm.DB, t order.Target) (row orderRow, o order.Order, err error) {
	row, err = s.orderRow(tx, t, s.engine.Locked("o.*", oneOrderOf+s.engine.NoWait))
	if sqldb.Is(err, sqldb.RowLocked) {
		err = errHeld
	}
	if err == nil {
		o, err = s.withLines(tx, row)
	}
	return row, o, err
}
