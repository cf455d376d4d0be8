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
	"example.com/shop/internal/stock"
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
	a, found, err = lookUp(s.db.WithContext(ctx), r)
	if err != nil {
		return idempotency.Answer{}, false, s.translate(ctx, err)
	}
	return a, found, nil
}

// lookUp reads the answer that is stored for the key of r through db, which may be a
// transaction.
func lookUp(db *gorm.DB, r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	if err := fits(r.Scope); err != nil {
		return idempotency.Answer{}, false, err
	}
	var row struct {
		Hash     []byte
		Status   int
		Location string
		Body     []byte
	}
	q := db.Raw("SELECT hash, status, location, body FROM idempotency_keys WHERE customer_id = ? AND route = ? AND idem_key = ?",
		r.Scope.Customer, r.Scope.Route, r.Scope.Key).Scan(&row)
	switch {
	case q.Error != nil || q.RowsAffected == 0:
		return idempotency.Answer{}, false, q.Error
	case !bytes.Equal(row.Hash, r.Hash[:]):
		return idempotency.Answer{}, false, idempotency.ErrReused
	}
	return idempotency.Answer{Status: row.Status, Location: row.Location, Body: row.Body}, true, nil
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
func (s *Store) Refuse(ctx context.Context, r *idempotency.Request, result any, err error) error {
	if _, replayed := errors.AsType[*idempotency.AnsweredError](err); r == nil || replayed || errors.Is(err, idempotency.ErrReused) {
		return err
	}
	a, final := r.Render(result, err)
	if !final {
		return err
	}
	stored := s.writing(ctx, func() error { return s.keep(s.db.WithContext(ctx), answer{r, a}) })
	switch {
	case errors.Is(stored, errAnswered):
		return s.replay(ctx, r)
	case stored != nil:
		return stored
	}
	return err
}

// keep stores answers, as the last statement of a transaction: whoever carries out the same
// request waits here until the outcome is known, and holds what it has changed meanwhile.
func (s *Store) keep(db *gorm.DB, answers ...answer) error {
	if len(answers) == 0 {
		return nil
	}
	args := make([]any, 0, 7*len(answers))
	for _, a := range answers {
		if err := fits(a.once.Scope); err != nil {
			return err
		}
		args = append(args, a.once.Scope.Customer, a.once.Scope.Route, a.once.Scope.Key,
			a.once.Hash[:], a.Status, a.Location, append([]byte{}, a.Body...)) // nil would be NULL
	}
	row := "(?, ?, ?, ?, ?, ?, ?, " + s.dialect.now + ")"
	err := db.Exec("INSERT INTO idempotency_keys (customer_id, route, idem_key, hash, status, location, body, created_at) VALUES "+
		row+strings.Repeat(", "+row, len(answers)-1), args...).Error
	if duplicate(err) {
		return errAnswered
	}
	return err
}

// render returns the answer to an operation that succeeded, or nothing without a key.
func render(once *idempotency.Request, result any) []answer {
	if once == nil {
		return nil
	}
	a, final := once.Render(result, nil)
	if !final {
		return nil
	}
	return []answer{{once, a}}
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

// resolving returns how to run what cannot be recognised when the reply to its COMMIT was
// lost, but by its key.
func (s *Store) resolving(once *idempotency.Request) runner {
	if once == nil {
		return s.inTx
	}
	return s.repeating
}

// answering runs fn in a transaction and stores the answer in it, if fn has done something.
// It fails with [*idempotency.AnsweredError] or [idempotency.ErrReused] if the key is stored: after
// a COMMIT whose reply was lost, too, as then the key tells what became of it.
func (s *Store) answering(ctx context.Context, run runner, once *idempotency.Request, fn func(tx *gorm.DB) (result any, done bool, err error)) error {
	err := run(ctx, func(tx *gorm.DB) error {
		result, done, err := fn(tx)
		switch {
		case err != nil || once == nil:
			return err
		case done:
			return s.keep(tx, render(once, result)...)
		}
		// Perhaps an equal request has done it.
		if _, found, err := lookUp(tx, once); found || errors.Is(err, idempotency.ErrReused) {
			return errAnswered
		} else {
			return err
		}
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

// PurgeAnswers deletes up to limit answers that are older than age by the database's clock,
// the oldest first, and returns how many. It blocks until that is done or ctx ends, and
// deletes a few hundred at a time, so that nobody waits long for it. Several may do it at
// once. What was deleted before an error stays deleted.
func (s *Store) PurgeAnswers(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	for n < int64(limit) {
		some := min(maxRows, int64(limit)-n)
		var deleted int64
		err := s.writing(ctx, func() error {
			r := s.db.WithContext(ctx).Exec(s.dialect.purge, age.Microseconds(), some)
			deleted = r.RowsAffected
			return r.Error
		})
		n += deleted
		if err != nil || deleted < some {
			return n, err
		}
	}
	return n, nil
}
