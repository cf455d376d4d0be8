package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// stored returns the rows of the orders that exist. Its locking read waits
// for a session that still holds such a row. A row that it does not find will not appear later.
func (s *Store) stored(ctx context.Context, ids ...string) (rows []orderRow, err error) {
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw("SELECT * FROM orders"+s.dialect.byKey+" WHERE id IN ?"+s.dialect.forUpdate, ids).Scan(&rows).Error
	})
	return rows, err
}

// answerStored answers the requests that have been stored, by this transaction if the reply to its
// COMMIT was lost and else by an earlier one.
func (b *transaction) answerStored(ctx context.Context, lost bool) error {
	ids := make([]string, len(b.requests))
	for i, r := range b.requests {
		ids[i] = r.Order.ID
	}
	rows, err := b.stored(ctx, ids...)
	if err != nil {
		return err
	}
	byID := make(map[string]orderRow, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	for _, r := range b.requests {
		o := b.accepted(r)
		row, found := byID[r.Order.ID]
		switch {
		case !found, r.Queued && !lost, r.Queued && row.ExpiresAt != o.ExpiresAt.UnixMicro():
			continue
		case !lost:
			if o, err = b.Order(ctx, r.Order.ID, ""); err != nil { // it is there, whatever there is to say of it
				return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
		}
		r.Order, r.Err, r.Answered = o, nil, true
	}
	if lost { // otherwise the timers were rolled back with the batch
		b.push()
	}
	return nil
}

// answerKnown answers the requests whose keys are stored.
func (b *transaction) answerKnown(ctx context.Context) error {
	asked := make(map[*order.Request]*lookUp)
	for _, r := range b.requests {
		if r.Key != nil && !r.Answered {
			asked[r] = &lookUp{scope: r.Key.Scope}
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Values(asked)), maxLookUps) {
		if err := readAnswers(b.db.WithContext(ctx), some); err != nil {
			return b.translate(ctx, err)
		}
	}
	for r, l := range asked {
		if l.row == nil {
			continue
		}
		r.Answered = true
		a, _, err := l.answer(r.Key)
		if r.Err = err; err == nil {
			r.Err = &idempotency.AnsweredError{Answer: a}
		}
	}
	return nil
}
