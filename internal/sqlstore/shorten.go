package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/timeout"
)

// ShortenWaits gives a new time to orders that were placed in the future, by the database's clock. A clock that was set back leaves
// such orders, whose units would be reserved for as long as it was set back. It returns how many. It changes those with more than twice their own
// time left, and finds them if that is more than twice ttl. Clocks of several nodes differ by less. Orders that another transaction has
// locked are left for the next call.
//
// hold begins each transaction, and its error ends them; it may be nil. After an error, some orders may have changed.
func (s *Store) ShortenWaits(ctx context.Context, hold func(context.Context, timeout.Tx) error, ttl time.Duration) (n int64, err error) {
	for _, status := range []order.Status{order.Pending, order.Queued} {
		for {
			var some int
			err = s.repeating(ctx, func(tx *gorm.DB) (err error) {
				if hold != nil {
					if err := hold(ctx, tx.Statement.ConnPool); err != nil {
						return err
					}
				}
				some, err = s.shorten(tx, status, ttl)
				return err
			})
			if err != nil {
				return n, err
			}
			if some == 0 {
				break
			}
			n += int64(some)
		}
	}
	return n, nil
}

// shorten changes those of the orders that no other transaction has locked, up to maxRows, and returns how many.
func (s *Store) shorten(tx *gorm.DB, status order.Status, ttl time.Duration) (n int, err error) {
	var ids []string
	err = tx.Raw("SELECT id FROM orders"+s.engine.Index("orders_status")+" WHERE status = ? AND expires_at > "+s.engine.Now+" + ?"+
		" AND created_at - "+s.engine.Now+" > expires_at - created_at ORDER BY expires_at DESC LIMIT ?", string(status), 2*ttl.Microseconds(), maxRows).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var rows []orderRow
	read := "SELECT o.*, " + s.engine.Now + " AS read_at FROM orders o" + s.engine.ByKey + " WHERE id IN ? ORDER BY id" + s.engine.SkipLocked
	if err := tx.Raw(read, ids).Scan(&rows).Error; err != nil {
		return 0, err
	}
	var end script
	var timers []timeout.Timer
	for _, r := range rows {
		life := r.ExpiresAt - r.CreatedAt
		if r.Status != string(status) || r.CreatedAt-r.ReadAt <= life {
			continue
		}
		if life <= 0 { // it was queued before the clock was set back, and placed afterwards
			life = ttl.Microseconds()
		}
		due := r.ReadAt + life
		end.add("UPDATE orders SET created_at = ?, expires_at = ? WHERE id = ?", r.ReadAt, due, r.ID)
		if status == order.Queued {
			due = r.ReadAt
		}
		timers = append(timers, timeout.Timer{Kind: timerOf(status), ID: r.ID, Due: time.UnixMicro(due)})
	}
	if len(timers) == 0 {
		return 0, nil
	}
	if _, err := s.timers.Schedule(tx.Statement.Context, &end, timers...); err != nil {
		return 0, err
	}
	return len(timers), s.run(tx, &end)
}
