package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// errRefused rolls back a batch of which nothing is left to store.
var errRefused = errors.New("sqlstore: every order of the batch was refused")

// Commit implements [order.Store].
func (s *Store) Commit(ctx context.Context, claims []stock.Claim, requests []*order.Request) error {
	if len(requests) > 1 && len(claims) > 1 {
		return fmt.Errorf("sqlstore: %d orders of %d SKUs in one transaction", len(requests), len(claims))
	}
	open := slices.Clone(requests)
	for lost := 0; len(open) > 0; lost++ {
		b := batch{Store: s, claims: claims, requests: open}
		err := b.read(ctx)
		if err == nil {
			err = s.inTx(ctx, b.place)
		}
		switch {
		case err == nil, errors.Is(err, errRefused):
			b.answer()
			b.push()
			return nil
		case !duplicate(err) && !errors.Is(err, order.ErrOutcomeUnknown), lost == maxRetries:
			return err
		}
		if open, err = s.unstored(ctx, open); err != nil {
			return err
		}
	}
	return nil
}

// unstored answers the requests that an earlier commit, whose reply was lost,
// has stored, and returns the others. It asks with a locking read, which waits
// for a session that still holds such a row: what it does not find will not
// appear later.
func (s *Store) unstored(ctx context.Context, requests []*order.Request) (rest []*order.Request, err error) {
	ids := make([]string, len(requests))
	for i, r := range requests {
		ids[i] = r.Order.ID
	}
	var stored []string
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		stored = nil
		return tx.Raw("SELECT id FROM orders WHERE id IN ?"+s.dialect.forUpdate, ids).Scan(&stored).Error
	})
	for _, r := range requests {
		if err != nil {
			break
		}
		if !slices.Contains(stored, r.Order.ID) {
			rest = append(rest, r)
			continue
		}
		r.Err = nil
		r.Order, err = s.Order(ctx, r.Order.ID, "")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
	}
	return rest, nil
}

// batch is what one transaction stores.
type batch struct {
	*Store
	claims   []stock.Claim
	requests []*order.Request

	now       int64
	seen      map[string]stock.Level // levels read before the transaction
	shortages [][]stock.Shortage     // of each request; set afresh by place
	push      func()                 // tells of the timers; set afresh by place
}

// read reads what is decided upon before the transaction begins, each level in
// a statement of its own.
func (b *batch) read(ctx context.Context) (err error) {
	if b.now, err = b.Store.now(ctx); err != nil {
		return b.translate(ctx, err)
	}
	b.seen = make(map[string]stock.Level)
	for _, c := range b.claims {
		if !c.Write.ReadsBefore() {
			continue
		}
		if b.seen[c.SKU], err = b.Level(ctx, c.SKU); err != nil {
			return err
		}
	}
	return nil
}

// place changes the stock rows in the order of the claims and then stores the
// orders that all of them had enough for. A basket that is short of anything
// leaves nothing behind.
func (b *batch) place(tx *gorm.DB) (err error) {
	b.shortages, b.push = make([][]stock.Shortage, len(b.requests)), func() {}
	for _, c := range b.claims {
		if err := b.reserve(tx, c); err != nil {
			return err
		}
	}
	var (
		accepted []order.Order
		orders   []orderRow
		lines    []lineRow
		ledger   []ledgerRow
	)
	fences := make(map[string]dlock.Fence, len(b.claims))
	for _, c := range b.claims {
		fences[c.SKU] = c.Fence
	}
	for i, r := range b.requests {
		if len(b.shortages[i]) > 0 {
			continue
		}
		o := b.accepted(r)
		accepted = append(accepted, o)
		orders = append(orders, fromOrder(o))
		for _, it := range o.Items {
			lines = append(lines, lineRow{OrderID: o.ID, SKU: it.SKU, Quantity: it.Quantity})
			ledger = append(ledger, b.entry(stock.Reserve, it.SKU, o.ID, it.Quantity, b.now, fences[it.SKU]))
		}
	}
	if len(orders) == 0 {
		return errRefused
	}
	if err := tx.Create(&orders).Error; err != nil {
		return err
	}
	if err := tx.Create(&lines).Error; err != nil {
		return err
	}
	if err := tx.Create(&ledger).Error; err != nil {
		return err
	}
	b.push, err = b.schedule(tx, accepted...)
	return err
}

// accepted returns the order of r as it is stored.
func (b *batch) accepted(r *order.Request) order.Order {
	o := r.Order
	o.Status = order.Pending
	o.CreatedAt = time.UnixMicro(b.now).UTC()
	o.ExpiresAt = o.CreatedAt.Add(r.TTL)
	return o
}

// answer fills in the requests after the transaction.
func (b *batch) answer() {
	for i, r := range b.requests {
		r.Err = nil
		if len(b.shortages[i]) > 0 {
			r.Err = &stock.ShortageError{Shortages: b.shortages[i]}
			continue
		}
		r.Order = b.accepted(r)
	}
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
