package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

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

// stored returns the rows of the orders that exist. It uses a locking read, which waits for a session that still holds
// such a row. So an order that it does not find will not appear later.
func (s *Store) stored(ctx context.Context, ids ...string) (rows []orderRow, err error) {
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw("SELECT * FROM orders WHERE id IN ?"+s.dialect.forUpdate, ids).Scan(&rows).Error
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
