package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// errRefused rolls back a batch of which nothing is left to store.
var errRefused = errors.New("sqlstore: every order of the batch was refused")

// Commit implements [order.Store]. If a rolled-back transaction decides some requests, Commit answers these, and begins
// again with the others.
func (s *Store) Commit(ctx context.Context, batches ...*order.Batch) error {
	b := batches[0]
	if len(batches) > 1 || b.Bounded {
		return s.commitShared(ctx, batches)
	}
	if len(b.Requests) > 1 && len(b.Claims) > 1 {
		return fmt.Errorf("sqlstore: %d orders of %d SKUs in one batch", len(b.Requests), len(b.Claims))
	}
	begun := false
	err := s.rows.Do(ctx, skusOfClaims(b), func(*bulkhead.Places) error {
		begun = true
		err := s.commit(ctx, batches, 0)
		if err == nil && b.Err != nil {
			err, b.Err = b.Err, nil
		}
		return err
	})
	if err != nil && !begun && slices.ContainsFunc(b.Requests, func(r *order.Request) bool { return r.Uncertain && !r.Answered }) {
		err = fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
	}
	return uncertain(batches, err)
}

// AwaitRows implements [order.Store].
func (s *Store) AwaitRows(ctx context.Context, skus []string) error {
	return s.rows.Do(ctx, skus, func(*bulkhead.Places) error { return nil })
}

func skusOfClaims(b *order.Batch) []string {
	skus := make([]string, len(b.Claims))
	for i, c := range b.Claims {
		skus[i] = c.SKU
	}
	return skus
}

// commit commits batches. A wait that is not 0 bounds how long they wait for rows and keys.
func (s *Store) commit(ctx context.Context, batches []*order.Batch, wait time.Duration) error {
	for try := 0; ; try++ {
		b := newTransaction(s, batches, wait)
		if len(b.requests) == 0 {
			return nil
		}
		doubt := slices.ContainsFunc(b.requests, func(r *order.Request) bool { return r.Uncertain })
		err := b.read(ctx)
		switch {
		case doubt && err != nil:
			return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
		case doubt:
			if err := b.answerStored(ctx, false); err != nil {
				return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
			for _, r := range b.requests {
				r.Uncertain = false
			}
			continue
		case err == nil:
			err = s.inTx(ctx, b.place)
		}
		if err == nil || errors.Is(err, errRefused) {
			b.answer()
			b.push()
			for _, notify := range b.notify {
				notify(err == nil)
			}
			return nil
		}
		switch duplicate := sqldb.Duplicate(err); {
		case try == sqldb.MaxRetries && duplicate:
			return fmt.Errorf("%w: %w", stock.ErrBusy, err)
		case try == sqldb.MaxRetries:
			return err
		}
		switch lost := errors.Is(err, order.ErrOutcomeUnknown); {
		case lost:
			if err = b.answerStored(ctx, true); err != nil {
				err = fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
		case sqldb.Duplicate(err): // of an order, or of a key
			if err = b.answerStored(ctx, false); err == nil {
				err = b.answerKnown(ctx)
			}
		case errors.Is(err, errNoCustomerRow):
			err = b.insertCustomers(ctx)
		}
		if err != nil {
			return err
		}
	}
}
