package sqlstore

import (
	"context"
	"iter"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// transaction is what one transaction stores: the requests of batches that have no answer yet.
type transaction struct {
	*Store
	batches  []*order.Batch
	wait     time.Duration // for rows and keys, if it is shared; otherwise 0
	requests []*order.Request
	of       []int // of each request: its batch

	now        int64
	seen       map[string]stock.Level // levels read before the transaction
	limited    map[string]int64       // limits per customer of the SKUs that have one
	duplicates []int                  // of each request: the one before it with the same key, or -1

	// Set afresh by place.
	failed    []error                    // of each batch: for which nothing of it is stored
	usages    map[string]*usage          // of the customers whom a limit concerns
	refused   []error                    // of each request: for which it never came to the stock
	shortages [][]stock.Shortage         // of each request
	answers   map[int]idempotency.Answer // of the requests that are accepted and have keys
	push      func()                     // sends the timers to the index
	end       script                     // ends the transaction
	notify    []func(committed bool)     // of the levels
}

func newTransaction(s *Store, batches []*order.Batch, wait time.Duration) *transaction {
	b := &transaction{Store: s, batches: batches, wait: wait}
	for i, batch := range batches {
		for _, r := range batch.Requests {
			if !r.Answered {
				b.requests, b.of = append(b.requests, r), append(b.of, i)
			}
		}
	}
	return b
}

// shared reports whether the transaction waits for rows and keys for so long only, as others may be in it.
func (b *transaction) shared() bool { return b.wait > 0 }

// claims returns the claims of all batches.
func (b *transaction) claims() iter.Seq[stock.Claim] {
	return func(yield func(stock.Claim) bool) {
		for _, batch := range b.batches {
			for _, c := range batch.Claims {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// read reads what is decided upon before the transaction. Each level has a statement of its own, and so has the time if
// no later statement returns it.
func (b *transaction) read(ctx context.Context) (err error) {
	b.push = func() {}
	b.pairDuplicates()
	b.seen, b.limited = make(map[string]stock.Level), make(map[string]int64)
	asks := false
	for c := range b.claims() {
		limit, known := b.limits.Load(c.SKU)
		if c.Update.ReadsBefore() || !known {
			level, now, err := b.levelAt(ctx, c.SKU)
			if err != nil {
				return err
			}
			b.seen[c.SKU], b.now, limit = level, now, level.Limit
		}
		asks = asks || c.Update == stock.Conditional && !b.shared() && !b.dialect.scripts
		if n := limit.(int64); n > 0 { //nolint:errcheck,forcetypeassert // only limits are stored
			b.limited[c.SKU] = n
		}
	}
	if b.now == 0 && asks { // the others ask with the level, in the transaction
		if b.now, err = b.Store.now(ctx); err != nil {
			return b.translate(ctx, err)
		}
	}
	return nil
}

// pairDuplicates finds the requests that have one key.
func (b *transaction) pairDuplicates() {
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
func (b *transaction) accepted(r *order.Request) order.Order {
	o, now := r.Order, time.UnixMicro(b.now).UTC()
	o.Status, o.ExpiresAt = order.Pending, now.Add(r.TTL)
	if !r.Queued {
		o.CreatedAt = now
	}
	return o
}
