package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// errRefused rolls back a transaction that has no order to store.
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
	if err == nil {
		return nil
	}
	if !begun && slices.ContainsFunc(b.Requests, func(r *order.Request) bool { return r.Uncertain && !r.Answered }) {
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

// commit commits batches in one transaction. A wait that is not 0 bounds how long the transaction waits for rows and
// keys. Deadlocks and a busy database are retried by inTx. After any other failure that repair can resolve, the
// requests that are still without an answer get a new transaction, [sqldb.MaxRetries] times at most.
func (s *Store) commit(ctx context.Context, batches []*order.Batch, wait time.Duration) error {
	if err := s.resolveEarlier(ctx, batches); err != nil {
		return err
	}
	for try := 0; ; try++ {
		t := newTransaction(s, batches, wait)
		if len(t.requests) == 0 {
			return nil
		}
		err := t.read(ctx)
		if err == nil {
			err = s.inTx(ctx, t.place)
		}
		switch {
		case err == nil, errors.Is(err, errRefused):
			t.answerAll(err == nil)
			return nil
		case try < sqldb.MaxRetries:
			err = t.repair(ctx, err)
		case sqldb.Is(err, sqldb.Duplicate):
			err = fmt.Errorf("%w: %w", stock.ErrBusy, err)
		}
		if err != nil {
			return err
		}
	}
}

// resolveEarlier answers the requests that an earlier Commit has stored without receiving the outcome.
func (s *Store) resolveEarlier(ctx context.Context, batches []*order.Batch) error {
	unknown := func(r *order.Request) bool { return r.Uncertain && !r.Answered }
	if !slices.ContainsFunc(batches, func(b *order.Batch) bool { return slices.ContainsFunc(b.Requests, unknown) }) {
		return nil
	}
	t := newTransaction(s, batches, 0)
	if err := t.answerStored(ctx, false); err != nil {
		return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
	}
	for _, r := range t.requests {
		r.Uncertain = false
	}
	return nil
}

// repair answers the requests whose outcome it finds after the transaction has failed with err, or inserts what was
// missing. It returns nil if the other requests can be tried again, and otherwise the error of Commit.
func (t *transaction) repair(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, order.ErrOutcomeUnknown): // the reply to COMMIT was lost, or proves nothing
		if err := t.answerStored(ctx, true); err != nil {
			return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
		}
		unanswered := func(r *request) bool { return !r.Answered }
		if failed, ok := errors.AsType[*commitError](err); ok && sqldb.Unchanged(failed.err) && slices.ContainsFunc(t.requests, unanswered) {
			return t.translate(ctx, failed.err) // the database has rolled back, and would again
		}
		return nil
	case sqldb.Is(err, sqldb.Duplicate): // the id of an order is stored, or a key
		if err := t.answerStored(ctx, false); err != nil {
			return err
		}
		return t.answerKnown(ctx)
	case errors.Is(err, errNoCounter):
		return t.fillMissing(ctx)
	}
	return err
}
