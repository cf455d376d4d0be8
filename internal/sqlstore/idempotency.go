package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// Answer implements [order.Store]. Calls that arrive while a statement is being answered share the next statement.
func (s *Store) Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	if err := fits(r.Scope); err != nil {
		return idempotency.Answer{}, false, err
	}
	l := &lookUp{scope: r.Scope, ctx: ctx}
	if err := s.lookUps.do(l); err != nil {
		return idempotency.Answer{}, false, s.translate(ctx, err)
	}
	return l.answer(r)
}

// lookUp is the wait for what is stored with a key.
type lookUp struct {
	scope idempotency.Scope
	row   *answerRow // nil: nothing is

	ctx  context.Context //nolint:containedctx // That of Answer.
	done chan error      // has room for one
}

// answer returns what was found for r.
func (l *lookUp) answer(r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	switch {
	case l.row == nil:
		return idempotency.Answer{}, false, nil
	case !bytes.Equal(l.row.Hash, r.Hash[:]):
		return idempotency.Answer{}, false, idempotency.ErrReused
	}
	return idempotency.Answer{Status: l.row.Status, Body: l.row.Body}, true, nil
}

type answerRow struct {
	CustomerID, Route, IdemKey string
	Hash                       []byte
	Status                     int
	Body                       []byte
}

// maxKeys bounds the keys of one statement.
const maxKeys = 128

// lookUps is where requests wait for what is stored with their keys. A read that begins after several have asked serves all of them.
type lookUps struct {
	db *gorm.DB

	mu      sync.Mutex
	asked   []*lookUp // guarded by mu
	reading bool      // a goroutine reads until none asks; guarded by mu
}

// do fills in l. It blocks until a read with l is over, or l.ctx ends.
func (k *lookUps) do(l *lookUp) error {
	l.done = make(chan error, 1)
	k.mu.Lock()
	k.asked = append(k.asked, l)
	first := !k.reading
	k.reading = true
	k.mu.Unlock()
	if first {
		go k.read() // until the queue is empty; the context of a waiting call bounds each read
	}
	select {
	case err := <-l.done:
		return err
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

// read reads until none asks. A read has the context of its first request. If that ends, the others are read again.
func (k *lookUps) read() {
	for some := k.take(nil); len(some) > 0; {
		first, again := some[0], []*lookUp(nil)
		err := readAnswers(k.db.WithContext(first.ctx), some)
		if err != nil && first.ctx.Err() != nil {
			some, again = some[:1], some[1:]
		}
		for _, l := range some {
			l.done <- err
		}
		some = k.take(again)
	}
}

// take returns the look-ups of the next read: again, and the look-ups that were added since. It drops those whose context has ended.
func (k *lookUps) take(again []*lookUp) []*lookUp {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := slices.DeleteFunc(slices.Concat(again, k.asked), func(l *lookUp) bool { return l.ctx.Err() != nil })
	n := min(len(waiting), maxKeys)
	k.asked, k.reading = waiting[n:], n > 0
	return waiting[:n:n]
}

func readAnswers(db *gorm.DB, asked []*lookUp) error {
	const one = "customer_id = ? AND route = ? AND idem_key = ?"
	args := make([]any, 0, 3*len(asked))
	for _, l := range asked {
		args = append(args, l.scope.Customer, l.scope.Route, l.scope.Key)
	}
	var rows []answerRow
	err := db.Raw("SELECT customer_id, route, idem_key, hash, status, body FROM idempotency_keys WHERE "+
		one+strings.Repeat(" OR "+one, len(asked)-1), args...).Scan(&rows).Error
	if err != nil {
		return err
	}
	found := make(map[idempotency.Scope]*answerRow, len(rows))
	for i, r := range rows {
		found[idempotency.Scope{Customer: r.CustomerID, Route: r.Route, Key: r.IdemKey}] = &rows[i]
	}
	for _, l := range asked {
		l.row = found[l.scope]
	}
	return nil
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
		l := &lookUp{scope: once.Scope}
		if err := readAnswers(tx, []*lookUp{l}); err != nil {
			return err
		}
		if l.row != nil {
			return errAnswered
		}
		return nil
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
