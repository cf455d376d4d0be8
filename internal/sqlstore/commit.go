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
	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
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
	open := slices.DeleteFunc(slices.Clone(requests), func(r *order.Request) bool { return r.Answered })
	skus := make([]string, len(claims))
	for i, c := range claims {
		skus[i] = c.SKU
	}
	begun := false
	err := s.rows.Do(ctx, skus, func(*bulkhead.Places) error {
		begun = true
		return s.commit(ctx, claims, open)
	})
	if err != nil && !begun && slices.ContainsFunc(open, func(r *order.Request) bool { return r.Uncertain }) {
		err = fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
	}
	if errors.Is(err, order.ErrOutcomeUnknown) {
		for _, r := range open {
			r.Uncertain = !r.Answered
		}
	}
	return err
}

func (s *Store) commit(ctx context.Context, claims []stock.Claim, open []*order.Request) error {
	doubt := slices.ContainsFunc(open, func(r *order.Request) bool { return r.Uncertain })
	takesAcross := false
	for try := 0; len(open) > 0; try++ {
		b := &batch{Store: s, claims: claims, requests: open, takesAcross: takesAcross}
		err := b.read(ctx)
		switch {
		case doubt && err != nil:
			return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
		case doubt:
			if open, err = b.unstored(ctx, false); err != nil {
				return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
			doubt = false
			continue
		case err == nil:
			err = s.inTx(ctx, b.place)
		}
		if err == nil || errors.Is(err, errRefused) {
			b.answer()
			b.push()
			for _, tell := range b.notify {
				tell(err == nil)
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
			if open, err = b.unstored(ctx, true); err != nil {
				err = fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
		case sqldb.Duplicate(err): // of an order, or of a key
			if b.requests, err = b.unstored(ctx, false); err == nil {
				open, err = b.unanswered(ctx)
			}
		case errors.Is(err, errNoCustomerRow):
			err = b.insertCustomers(ctx)
		case errors.Is(err, errSegmentChanged):
			takesAcross, err = true, nil
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
	return rows, err
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
		case i < 0, r.Queued && !lost, r.Queued && rows[i].ExpiresAt != o.ExpiresAt.UnixMicro():
			rest = append(rest, r)
			continue
		case !lost:
			if o, err = b.Order(ctx, r.Order.ID, ""); err != nil { // it is there, whatever there is to say of it
				return nil, fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
			}
		}
		r.Order, r.Err, r.Answered = o, nil, true
	}
	if lost { // otherwise the timers were rolled back with the batch
		b.push()
	}
	return rest, nil
}

// unanswered answers the requests whose keys are stored, and returns the others.
func (b *batch) unanswered(ctx context.Context) (rest []*order.Request, err error) {
	asked := make(map[*order.Request]*lookUp)
	for _, r := range b.requests {
		if r.Key != nil {
			asked[r] = &lookUp{scope: r.Key.Scope}
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Values(asked)), maxLookUps) {
		if err := readAnswers(b.db.WithContext(ctx), some); err != nil {
			return nil, b.translate(ctx, err)
		}
	}
	for _, r := range b.requests {
		l := asked[r]
		if l == nil || l.row == nil {
			rest = append(rest, r)
			continue
		}
		r.Answered = true
		a, _, err := l.answer(r.Key)
		if r.Err = err; err == nil {
			r.Err = &idempotency.AnsweredError{Answer: a}
		}
	}
	return rest, nil
}

// batch is what one transaction stores.
type batch struct {
	*Store
	claims      []stock.Claim
	requests    []*order.Request
	takesAcross bool // locks all segments before it takes from any

	now        int64
	seen       map[string]stock.Level // levels read before the transaction
	limited    map[string]int64       // limits per customer of the SKUs that have one
	free       map[string][]int64     // of the segments, read before the transaction
	duplicates []int                  // of each request: the one before it with the same key, or -1

	// Set afresh by place.
	usages    map[string]*usage          // of the customers whom a limit concerns
	refused   []error                    // of each request: for which it never came to the stock
	shortages [][]stock.Shortage         // of each request
	answers   map[int]idempotency.Answer // of the requests that are accepted and have keys
	push      func()                     // tells of the timers
	end       script                     // ends the transaction
	notify    []func(committed bool)     // of the levels
}

// read reads what is decided upon before the transaction begins, each level in
// a statement of its own, and the time if there will be no better occasion.
func (b *batch) read(ctx context.Context) (err error) {
	b.push = func() {}
	b.pairDuplicates()
	b.seen, b.limited = make(map[string]stock.Level), make(map[string]int64)
	asks := false
	for _, c := range b.claims {
		k, known := b.kinds.Load(c.SKU)
		if c.Update.ReadsBefore() || !known {
			level, now, err := b.levelAt(ctx, c.SKU)
			if err != nil {
				return err
			}
			b.seen[c.SKU], b.now, k = level, now, kind{limit: level.Limit}
		}
		asks = asks || c.Update == stock.Conditional
		if n := k.(kind).limit; n > 0 { //nolint:errcheck,forcetypeassert // only kinds are stored
			b.limited[c.SKU] = n
		}
	}
	if err := b.readSegments(b.db.WithContext(ctx)); err != nil {
		return b.translate(ctx, err)
	}
	if b.now == 0 && asks { // the others ask with the level, in the transaction
		if b.now, err = b.Store.now(ctx); err != nil {
			return b.translate(ctx, err)
		}
	}
	return nil
}

// pairDuplicates finds the requests that have one key.
func (b *batch) pairDuplicates() {
	latest := make(map[idempotency.Scope]int)
	b.duplicates = make([]int, len(b.requests))
	for i, r := range b.requests {
		b.duplicates[i] = -1
		if r.Key == nil {
			continue
		}
		if j, ok := latest[r.Key.Scope]; ok {
			b.duplicates[i] = j
		}
		latest[r.Key.Scope] = i
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
