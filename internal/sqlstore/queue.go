package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout"
)

// Enqueue implements [order.Store].
//
// A queued order is a row with items, a timer of [order.PlaceTimer], and no ledger entry. Its placement
// updates that row instead of inserting one, locks it before the stock, and then compares its time.
func (s *Store) Enqueue(ctx context.Context, r *order.Request, pause time.Duration) error {
	var (
		o    order.Order
		push func()
	)
	for try := 0; ; try++ {
		err := s.inTx(ctx, func(tx *gorm.DB) (err error) {
			o, push, err = s.enqueue(tx, r, pause)
			return err
		})
		lost := errors.Is(err, order.ErrOutcomeUnknown)
		switch {
		case err == nil:
			r.Order = o
			push()
			return nil
		case errors.Is(err, errAnswered):
			return s.replay(ctx, r.Key)
		case !lost && !sqldb.Is(err, sqldb.Duplicate), try == sqldb.MaxRetries:
			return err
		}
		found, err := s.stored(ctx, r.Order.ID)
		if err != nil {
			return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
		}
		if len(found) == 0 {
			continue
		}
		if !lost { // by an earlier call
			o, err = s.Order(ctx, r.Order.ID, "")
			o.Status, o.Reason = order.Queued, "" // as that call has stored it
		}
		r.Order = o
		push()
		return err
	}
}

// enqueue stores the order of r and its timer in tx.
func (s *Store) enqueue(tx *gorm.DB, r *order.Request, pause time.Duration) (o order.Order, push func(), err error) {
	push = func() {}
	now, err := s.clock(tx)
	if err != nil {
		return order.Order{}, push, err
	}
	o = r.Order
	o.Status = order.Queued
	o.CreatedAt = time.UnixMicro(now).UTC()
	o.ExpiresAt = o.CreatedAt.Add(r.TTL)
	var c script
	c.orders([]order.Order{o})
	push, err = s.timers.Schedule(tx.Statement.Context, &c,
		timeout.Timer{Kind: order.PlaceTimer, ID: o.ID, Due: o.CreatedAt.Add(pause)})
	if err == nil {
		err = s.run(tx, &c)
	}
	if err != nil {
		return o, push, err
	}
	return o, push, s.keepResult(tx, r.Key, o)
}

// Reject implements [order.Store].
func (s *Store) Reject(ctx context.Context, id string, why order.Reason) error {
	return s.repeating(ctx, func(tx *gorm.DB) error {
		r := tx.Exec("UPDATE orders SET status = ?, reason = ? WHERE id = ? AND status = ?",
			string(order.Rejected), string(why), id, string(order.Queued))
		if r.Error != nil || r.RowsAffected == 0 {
			return r.Error
		}
		return s.timers.Cancel(tx.Statement.Context, tx.Statement.ConnPool, order.PlaceTimer, id)
	})
}

// lockQueued locks the orders of the requests that are queued, and refuses a request whose order is not. Every transaction
// locks orders before stock.
func (t *transaction) lockQueued(tx *gorm.DB) error {
	var ids []string
	for _, r := range t.requests {
		if r.Queued {
			ids = append(ids, r.Order.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []orderRow
	err := tx.Raw(t.engine.Locked("o.*", "orders o"+t.engine.ByKey+" WHERE id IN ? ORDER BY id"+t.engine.ForUpdate), ids).Scan(&rows).Error
	if err != nil {
		return err
	}
	found := byID(rows)
	for _, r := range t.requests {
		row, ok := found[r.Order.ID]
		switch {
		case !r.Queued, ok && row.order(nil).Status == order.Queued:
		case !ok:
			r.refused = fmt.Errorf("%w %q", order.ErrNotFound, r.Order.ID)
		default:
			o, err := t.withLines(tx, row)
			if err != nil {
				return err
			}
			r.refused = &order.StateError{Order: o}
		}
	}
	return nil
}
