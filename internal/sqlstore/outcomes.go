package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// Fate is the outcome of one order of a SKU as the ledger has it, by the database's clock.
type Fate struct {
	OrderID    string
	ExpiresAt  time.Time
	ReleasedAt time.Time // when units were first released; zero: never
	Releases   int       // how often they were released
	Payments   int       // how often they were paid for
}

// Twice reports whether an order that can end once has ended more often.
func (f Fate) Twice() bool { return f.Releases+f.Payments > 1 }

// Fates returns what became of every order of one SKU, in the order of their
// expiry, and the time of reading. It blocks until the database has answered or
// ctx ends, and changes nothing.
func (s *Store) Fates(ctx context.Context, sku string) (now time.Time, fates []Fate, err error) {
	const query = `
SELECT o.id, MIN(o.expires_at) AS expires_at,
  COALESCE(MIN(CASE WHEN l.movement = 'RELEASE' THEN l.created_at END), 0) AS released_at,
  COALESCE(SUM(CASE WHEN l.movement = 'RELEASE' THEN 1 ELSE 0 END), 0) AS releases,
  COALESCE(SUM(CASE WHEN l.movement = 'CONFIRM' THEN 1 ELSE 0 END), 0) AS payments
FROM ledger l JOIN orders o ON o.id = l.order_id
WHERE l.sku = ?
GROUP BY o.id
ORDER BY expires_at, o.id`
	var rows []struct {
		ID         string
		ExpiresAt  int64
		ReleasedAt int64
		Releases   int
		Payments   int
	}
	var at int64
	err = s.retrying(ctx, func() (err error) {
		rows = nil
		if err = s.db.WithContext(ctx).Raw(query, sku).Scan(&rows).Error; err == nil {
			at, err = s.now(ctx)
		}
		return err
	})
	if err != nil {
		return time.Time{}, nil, err
	}
	fates = make([]Fate, len(rows))
	for i, r := range rows {
		fates[i] = Fate{OrderID: r.ID, ExpiresAt: time.UnixMicro(r.ExpiresAt).UTC(), Releases: r.Releases, Payments: r.Payments}
		if r.Releases > 0 {
			fates[i].ReleasedAt = time.UnixMicro(r.ReleasedAt).UTC()
		}
	}
	return time.UnixMicro(at).UTC(), fates, nil
}

// maxOutcomeReads is how many transactions at once find out what became of orders.
const maxOutcomeReads = 4

// uncertain notes in the requests of batches that nobody knows what became of them, if err says so.
func uncertain(batches []*order.Batch, err error) error {
	if errors.Is(err, order.ErrOutcomeUnknown) {
		for _, b := range batches {
			for _, r := range b.Requests {
				r.Uncertain = !r.Answered
			}
		}
	}
	return err
}

// stored returns the rows of the orders that exist, by id. Its locking read waits for a session that still has such a
// row. An order that it does not find will not appear later. After an outage all orders in flight are looked up, and new ones need connections
// as well, so it waits until fewer than maxOutcomeReads others look.
func (s *Store) stored(ctx context.Context, ids ...string) (found map[string]orderRow, err error) {
	select {
	case s.outcomeReads <- struct{}{}:
		defer func() { <-s.outcomeReads }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var rows []orderRow
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		rows = nil
		if s.engine.LocksPassInserts {
			if err := s.awaitInserts(tx, ids); err != nil {
				return err
			}
		}
		return tx.Raw("SELECT * FROM orders"+s.engine.ByKey+" WHERE id IN ?"+s.engine.ForUpdate, ids).Scan(&rows).Error
	})
	return byID(rows), err
}

// awaitInserts waits until every transaction that has inserted orders with these ids has ended: a locking read would pass them. It
// inserts them too, which waits, and undoes that.
func (s *Store) awaitInserts(tx *gorm.DB, ids []string) error {
	var c script
	c.add("SAVEPOINT before_inserts")
	for _, id := range distinct(ids) {
		c.add(s.engine.InsertNew("orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES (?, '', '', '', 0, 0)"), id)
	}
	c.add("ROLLBACK TO SAVEPOINT before_inserts")
	return s.run(tx, &c)
}

// byID returns rows by the ids of their orders.
func byID(rows []orderRow) map[string]orderRow {
	found := make(map[string]orderRow, len(rows))
	for _, row := range rows {
		found[row.ID] = row
	}
	return found
}

// answerStored answers the requests whose orders are stored: by this transaction if it is committed, although the reply was
// lost, and otherwise by an earlier transaction.
func (t *transaction) answerStored(ctx context.Context, lost bool) error {
	ids := make([]string, len(t.requests))
	for i, r := range t.requests {
		ids[i] = r.Order.ID
	}
	found, err := t.stored(ctx, ids...)
	if err != nil {
		return err
	}
	for _, r := range t.requests {
		row, ok := found[r.Order.ID]
		o := r.stored
		if !ok || r.Queued && (!lost || row.ExpiresAt != o.ExpiresAt.UnixMicro()) {
			continue // it is not stored, or only as a queued order
		}
		if !lost || !r.isAccepted() {
			if o, err = t.Order(ctx, r.Order.ID, ""); err != nil { // although it is stored
				return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
			if !r.Queued { // the answer is that of the transaction, although the order may have ended since
				o.Status, o.PaymentID = order.Pending, ""
			}
		}
		r.Order, r.Err, r.Answered = o, nil, true
	}
	if lost { // otherwise the timers were rolled back
		t.push()
	}
	return nil
}

// answerKnown answers the requests whose keys are stored.
func (t *transaction) answerKnown(ctx context.Context) error {
	asked := slices.DeleteFunc(slices.Clone(t.requests), func(r *request) bool { return r.Key == nil || r.Answered })
	for some := range slices.Chunk(asked, maxKeys) {
		keys := make([]*idempotency.Request, len(some))
		for i, r := range some {
			keys[i] = r.Key
		}
		stored, err := readAnswers(t.db.WithContext(ctx), keys...)
		if err != nil {
			return t.translate(ctx, err)
		}
		for _, r := range some {
			a, found, err := stored.of(r.Key)
			switch {
			case err != nil:
				r.Answered, r.Err = true, err
			case found:
				r.Answered, r.Err = true, &idempotency.AnsweredError{Answer: a}
			}
		}
	}
	return nil
}
