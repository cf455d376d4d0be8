package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// maxRoute is the largest length of a route in bytes; the schema has room for no more.
const maxRoute = 128

// errAnswered rolls back what would have been done again for a key that is stored.
var errAnswered = fmt.Errorf("sqlstore: the key is stored: %w", stock.ErrBusy)

// answer is what is stored with a key.
type answer struct {
	once *idempotency.Request
	idempotency.Answer
}

// Answer implements [order.Store].
func (s *Store) Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	if err := fits(r.Scope); err != nil {
		return idempotency.Answer{}, false, err
	}
	stored, err := readAnswers(s.db.WithContext(ctx), r)
	if err != nil {
		return idempotency.Answer{}, false, s.translate(ctx, err)
	}
	return stored.of(r)
}

// storedAnswers are what is stored with keys.
type storedAnswers map[idempotency.Scope]answerRow

type answerRow struct {
	CustomerID, Route, IdemKey string
	Hash                       []byte
	Status                     int
	Body                       []byte
}

// of returns the answer to r.
func (stored storedAnswers) of(r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	row, found := stored[r.Scope]
	switch {
	case !found:
		return idempotency.Answer{}, false, nil
	case !bytes.Equal(row.Hash, r.Hash[:]):
		return idempotency.Answer{}, false, idempotency.ErrReused
	}
	return idempotency.Answer{Status: row.Status, Body: row.Body}, true, nil
}

// maxKeys bounds the keys of one statement.
const maxKeys = 128

// readAnswers reads what is stored with the keys of requests, maxKeys at most.
func readAnswers(db *gorm.DB, requests ...*idempotency.Request) (storedAnswers, error) {
	const one = "customer_id = ? AND route = ? AND idem_key = ?"
	args := make([]any, 0, 3*len(requests))
	for _, r := range requests {
		args = append(args, r.Scope.Customer, r.Scope.Route, r.Scope.Key)
	}
	var rows []answerRow
	err := db.Raw("SELECT customer_id, route, idem_key, hash, status, body FROM idempotency_keys WHERE "+
		one+strings.Repeat(" OR "+one, len(requests)-1), args...).Scan(&rows).Error
	stored := make(storedAnswers, len(rows))
	for _, r := range rows {
		stored[idempotency.Scope{Customer: r.CustomerID, Route: r.Route, Key: r.IdemKey}] = r
	}
	return stored, err
}

// fits reports a scope that the schema has no room for: some servers would cut it off.
func fits(s idempotency.Scope) error {
	if len(s.Route) > maxRoute || len(s.Key) > idempotency.MaxKey {
		return fmt.Errorf("sqlstore: a route of %d bytes and a key of %d are more than %d and %d",
			len(s.Route), len(s.Key), maxRoute, idempotency.MaxKey)
	}
	return nil
}

// Refuse implements [order.Store]. Storing an answer again is safe, so the one statement is
// repeated when nobody knows what became of it.
func (s *Store) Refuse(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error {
	err := s.writing(ctx, func() error { return s.keep(s.db.WithContext(ctx), answer{r, a}) })
	if errors.Is(err, errAnswered) {
		return s.replay(ctx, r)
	}
	return err
}

// keep stores a.
func (s *Store) keep(db *gorm.DB, a answer) error {
	var c script
	if err := c.answers(s, []answer{a}); err != nil {
		return err
	}
	err := s.run(db, &c)
	if sqldb.Is(err, sqldb.Duplicate) {
		return errAnswered
	}
	return err
}

// keepResult stores the result of an operation that succeeded, if its request has a key.
func (s *Store) keepResult(db *gorm.DB, once *idempotency.Request, result any) error {
	if once == nil {
		return nil
	}
	a, err := idempotency.Result(result)
	if err != nil {
		return err
	}
	return s.keep(db, answer{once, a})
}

// replay returns the error of a request whose key is stored.
func (s *Store) replay(ctx context.Context, once *idempotency.Request) error {
	a, found, err := s.Answer(ctx, once)
	switch {
	case err != nil:
		return err
	case !found:
		return errAnswered // and was purged meanwhile
	}
	return &idempotency.AnsweredError{Answer: a}
}

// runner is [Store.inTx] or [Store.repeating].
type runner func(ctx context.Context, fn func(tx *gorm.DB) error) error

// resolving returns how to run a change that only its key can identify after the reply to its COMMIT was lost.
func (s *Store) resolving(once *idempotency.Request) runner {
	if once == nil {
		return s.inTx
	}
	return s.repeating
}

// answering runs fn in a transaction and stores the answer in it, if fn has done something. It fails with
// [*idempotency.AnsweredError] or [idempotency.ErrReused] if the key is stored. So the key also shows the outcome of a
// COMMIT whose reply was lost.
func (s *Store) answering(ctx context.Context, run runner, once *idempotency.Request, fn func(tx *gorm.DB) (result any, done bool, err error)) error {
	err := run(ctx, func(tx *gorm.DB) error {
		result, done, err := fn(tx)
		switch {
		case err != nil || once == nil:
			return err
		case done:
			return s.keepResult(tx, once, result)
		}
		// Perhaps an equal request has done it.
		stored, err := readAnswers(tx, once)
		if err == nil && len(stored) > 0 {
			err = errAnswered
		}
		return err
	})
	if !errors.Is(err, errAnswered) {
		return err
	}
	stored := s.replay(ctx, once)
	_, replayed := errors.AsType[*idempotency.AnsweredError](stored)
	if errors.Is(err, order.ErrOutcomeUnknown) && !replayed && !errors.Is(stored, idempotency.ErrReused) {
		return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, stored)
	}
	return stored
}

// PurgeAnswers deletes up to limit answers that are older than age by the database's clock, the oldest first, and
// returns how many. It blocks until that is done or ctx ends, and deletes a few hundred at a time, so that nobody waits
// long for it. hold begins each of these transactions, and its error ends them; with a nil one several may delete at
// once. After an error, deleted answers stay deleted.
func (s *Store) PurgeAnswers(ctx context.Context, hold func(context.Context, timeout.Tx) error, age time.Duration, limit int) (n int64, err error) {
	for n < int64(limit) {
		some := min(maxRows, int64(limit)-n)
		var deleted int64
		err := s.inTx(ctx, func(tx *gorm.DB) error {
			if hold != nil {
				if err := hold(ctx, tx.Statement.ConnPool); err != nil {
					return err
				}
			}
			r := tx.Exec(s.engine.DeleteSome("idempotency_keys", "created_at < "+s.engine.Now+" - ? ORDER BY created_at LIMIT ?"), age.Microseconds(), some)
			deleted = r.RowsAffected
			return r.Error
		})
		if err != nil {
			return n, err
		}
		if n += deleted; deleted < some {
			break
		}
	}
	return n, nil
}
