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
	"example.com/shop/internal/stock"
)

// errRefused rolls back a batch of which nothing is left to store.
var errRefused = errors.New("sqlstore: every order of the batch was refused")

// Commit implements [order.Store]. What is found out about some requests of the batch, once
// its transaction has been rolled back, answers those, and the others begin again.
func (s *Store) Commit(ctx context.Context, claims []stock.Claim, requests []*order.Request) error {
	if len(requests) > 1 && len(claims) > 1 {
		return fmt.Errorf("sqlstore: %d orders of %d SKUs in one transaction", len(requests), len(claims))
	}
	open := slices.Clone(requests)
	for try := 0; len(open) > 0; try++ {
		b := &batch{Store: s, claims: claims, requests: open}
		err := b.read(ctx)
		if err == nil {
			err = s.inTx(ctx, b.place)
		}
		if err == nil || errors.Is(err, errRefused) {
			b.answer()
			b.push()
			return nil
		}
		if try == maxRetries {
			return err
		}
		switch lost := errors.Is(err, order.ErrOutcomeUnknown); {
		case lost || duplicate(err):
			open, err = b.unstored(ctx, lost)
		case errors.Is(err, errAnswered):
			open, err = b.unanswered(ctx)
		case errors.Is(err, errStranger):
			err = b.enroll(ctx)
		case errors.Is(err, errMoved):
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stored returns the rows of the orders that exist. It asks with a locking read, which waits
// for a session that still holds such a row: what it does not find will not appear later.
func (s *Store) stored(ctx context.Context, ids ...string) (rows []orderRow, err error) {
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw("SELECT * FROM orders WHERE id IN ?"+s.dialect.forUpdate, ids).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
	}
	return rows, nil
}

// unstored answers the requests that have been stored, by this batch if the reply to its
// COMMIT was lost and else by an earlier one, and returns the others.
func (b *batch) unstored(ctx context.Context, lost bool) (rest []*order.Request, err error) {
	ids := make([]string, len(b.requests))
	for i, r := range b.requests {
		ids[i] = r.Order.ID
	}
	rows, err := b.stored(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, r := range b.requests {
		o := b.accepted(r)
		i := slices.IndexFunc(rows, func(row orderRow) bool { return row.ID == r.Order.ID })
		switch {
		case i < 0, r.Queued && rows[i].ExpiresAt != o.ExpiresAt.UnixMicro():
			rest = append(rest, r)
			continue
		case !lost:
			if o, err = b.Order(ctx, r.Order.ID, ""); err != nil {
				return nil, fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
		}
		r.Order, r.Err = o, nil
	}
	b.push()
	return rest, nil
}

// unanswered answers the requests whose keys are stored, and returns the others.
func (b *batch) unanswered(ctx context.Context) (rest []*order.Request, err error) {
	for _, r := range b.requests {
		if r.Once == nil {
			rest = append(rest, r)
			continue
		}
		a, found, err := b.Answer(ctx, r.Once)
		switch {
		case errors.Is(err, idempotency.ErrReused):
			r.Err = err
		case err != nil:
			return nil, err
		case found:
			r.Err = &idempotency.AnsweredError{Answer: a}
		default:
			rest = append(rest, r)
		}
	}
	return rest, nil
}

// batch is what one transaction stores.
type batch struct {
	*Store
	claims   []stock.Claim
	requests []*order.Request

	now     int64
	seen    map[string]stock.Level // levels read before the transaction
	limited map[string]int64       // limits per customer of the SKUs that have one
	twins   []int                  // of each request: the first one with the same key, or -1

	// Set afresh by place.
	tallies   map[string]*tally          // of the customers whom a limit concerns
	refused   []error                    // of each request: for which it never came to the stock
	shortages [][]stock.Shortage         // of each request
	answers   map[int]idempotency.Answer // of the requests that are accepted and have keys
	push      func()                     // tells of the timers
}

// read reads what is decided upon before the transaction begins, each level in
// a statement of its own.
func (b *batch) read(ctx context.Context) (err error) {
	b.push = func() {}
	b.pair()
	if b.now, err = b.Store.now(ctx); err != nil {
		return b.translate(ctx, err)
	}
	b.seen, b.limited = make(map[string]stock.Level), make(map[string]int64)
	for _, c := range b.claims {
		limit, known := b.limits.Load(c.SKU)
		if c.Write.ReadsBefore() || !known {
			level, err := b.Level(ctx, c.SKU)
			if err != nil {
				return err
			}
			b.seen[c.SKU], limit = level, level.Limit
		}
		if n := limit.(int64); n > 0 { //nolint:errcheck,forcetypeassert // only int64 is stored
			b.limited[c.SKU] = n
		}
	}
	return nil
}

// pair finds the requests that have one key.
func (b *batch) pair() {
	first := make(map[idempotency.Scope]int)
	b.twins = make([]int, len(b.requests))
	for i, r := range b.requests {
		b.twins[i] = -1
		if r.Once == nil {
			continue
		}
		if j, ok := first[r.Once.Scope]; ok {
			b.twins[i] = j
			continue
		}
		first[r.Once.Scope] = i
	}
}

// accepted returns the order of r as it is stored.
func (b *batch) accepted(r *order.Request) order.Order {
	o, now := r.Order, time.UnixMicro(b.now).UTC()
	o.Status, o.ExpiresAt = order.Pending, now.Add(r.TTL)
	if !r.Queued {
		o.CreatedAt = now
	}
	return o
}

// quantity returns how many units of sku the order of r wants.
func quantity(r *order.Request, sku string) int64 {
	for _, it := range r.Order.Items {
		if it.SKU == sku {
			return it.Quantity
		}
	}
	return 0
}
