package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/stock"
)

const (
	// rowWait is how long a transaction of several batches waits for their rows, and for keys that others store.
	rowWait = 200 * time.Millisecond

	// slowWait is the same when rowWait was over and no row was locked: the server is slow.
	slowWait = 4 * rowWait
)

var (
	// errRowsLocked says that somebody else kept one of the rows locked for as long as a shared transaction waits.
	errRowsLocked = errors.New("sqlstore: somebody else has a row of a shared transaction")

	// errKeyLocked says the same of an idempotency key.
	errKeyLocked = errors.New("sqlstore: somebody else stores a key of a shared transaction")
)

// commitShared commits several batches. It leaves some for later: those whose rows may be locked, and those whose rows
// or keys stay locked longer than a shared transaction waits.
func (s *Store) commitShared(ctx context.Context, batches []*order.Batch) error {
	for wait := rowWait; ; {
		free := slices.DeleteFunc(slices.Clone(batches), func(b *order.Batch) bool {
			if s.rows.Suspects(skusOfClaims(b)) {
				b.Err = order.ErrCommitAlone
			}
			return b.Err != nil
		})
		if len(free) == 1 && !free[0].Bounded {
			free[0].Err = order.ErrCommitAlone // alone it may wait
			return nil
		}
		if len(free) == 0 {
			return nil
		}
		err := s.commit(ctx, free, wait)
		switch {
		case errors.Is(err, errKeyLocked):
			keyed := func(b *order.Batch) bool {
				return slices.ContainsFunc(b.Requests, func(r *order.Request) bool { return r.Key != nil })
			}
			some := slices.ContainsFunc(free, keyed)
			leaveOut(free, func(b *order.Batch) bool { return !some || keyed(b) })
		case errors.Is(err, errRowsLocked):
			found, err := s.suspect(ctx, free)
			switch {
			case err != nil:
				return err
			case !found && wait == slowWait:
				leaveOut(free, func(*order.Batch) bool { return true })
			case !found:
				wait = slowWait
			}
		default:
			return uncertain(free, err)
		}
	}
}

// leaveOut has those of batches committed alone that are meant.
func leaveOut(batches []*order.Batch, meant func(*order.Batch) bool) {
	for _, b := range batches {
		if meant(b) {
			b.Err = order.ErrCommitAlone
		}
	}
}

// suspect finds out whether somebody else keeps rows of batches locked, and which. Nobody is admitted to a SKU whose row is
// locked.
func (s *Store) suspect(ctx context.Context, batches []*order.Batch) (found bool, err error) {
	var skus []string
	for _, b := range batches {
		skus = append(skus, skusOfClaims(b)...)
	}
	skus = distinct(skus)
	var free []string
	err = s.retrying(ctx, func() (err error) {
		free, err = s.lockFree(s.db.WithContext(ctx), skus)
		return err
	})
	if err != nil {
		return false, err
	}
	taken := func(sku string) bool { return !slices.Contains(free, sku) }
	skus = slices.DeleteFunc(skus, func(sku string) bool { return !taken(sku) })
	s.rows.Suspect(skus)
	leaveOut(batches, func(b *order.Batch) bool { return slices.ContainsFunc(skusOfClaims(b), taken) })
	return len(skus) > 0, nil
}

// reserveShared locks the rows of all SKUs in ascending order, and refuses the batches whose fencing tokens are stale.
// It decides the orders one by one, each all or nothing. The rows are written at the end of the transaction.
func (b *transaction) reserveShared(tx *gorm.DB) error {
	levels, err := b.lockLevels(tx)
	if err != nil {
		return err
	}
	for i, batch := range b.batches {
		b.failed[i] = admitAll(batch.Claims, levels)
	}
	for i := range b.requests {
		b.decide(i, levels)
	}
	for i, batch := range b.batches {
		for _, c := range batch.Claims {
			if l := levels[c.SKU]; b.failed[i] == nil && c.Seen != nil {
				b.noteLevel(c, l.Level, l.sold)
			}
		}
	}
	b.writeLevels(levels)
	return nil
}

// admitAll refuses claims if a row has outlived the fencing token of one of them. Otherwise the levels have accepted all.
func admitAll(claims []stock.Claim, levels map[string]*locked) error {
	for _, c := range claims {
		l, found := levels[c.SKU]
		if !found {
			return fmt.Errorf("%w %q", stock.ErrNotFound, c.SKU)
		}
		if c.Update == stock.Fenced {
			if err := admit(c, l.Level); err != nil {
				return err
			}
		}
	}
	for _, c := range claims {
		if c.Update == stock.Fenced {
			levels[c.SKU].Fence = c.Fence
		}
	}
	return nil
}

// locked is a level whose row is locked.
type locked struct {
	stock.Level

	sold int64
}

// lockLevels locks the rows of all claims, and reads them and the time when they were locked.
func (b *transaction) lockLevels(tx *gorm.DB) (map[string]*locked, error) {
	var skus []string
	for c := range b.claims() {
		skus = append(skus, c.SKU)
	}
	levels := make(map[string]*locked, len(skus))
	for some := range slices.Chunk(distinct(skus), maxRows) {
		var rows []skuRow
		query := "SELECT *, " + b.dialect.present + " AS now FROM skus" + b.dialect.byKey + " WHERE sku IN ? ORDER BY sku" + b.dialect.forUpdate
		if err := b.lockIn(tx, query, some, &rows); err != nil {
			return nil, err
		}
		for _, r := range rows {
			levels[r.SKU] = &locked{Level: r.level()}
			b.now = max(b.now, r.Now)
		}
	}
	return levels, nil
}

// distinct returns skus in ascending order, each once.
func distinct(skus []string) []string { return slices.Compact(slices.Sorted(slices.Values(skus))) }

// lockIn reads the rows of skus with a query that locks them. It waits for b.wait.
func (b *transaction) lockIn(tx *gorm.DB, query string, skus []string, rows any) error {
	err := tx.Raw(b.dialect.within(query, b.wait), skus).Scan(rows).Error
	if sqldb.Late(err) || sqldb.LockTimeout(err) {
		return fmt.Errorf("%w: %v", errRowsLocked, err) //nolint:errorlint // it is not to be repeated like another one
	}
	return err
}

// decide reserves in levels what request i wants, or notes what it is short of.
func (b *transaction) decide(i int, levels map[string]*locked) {
	if !b.eligible(i) {
		return
	}
	r := b.requests[i]
	for _, it := range r.Order.Items {
		if available := levels[it.SKU].Available(); available < it.Quantity {
			b.short(i, it.SKU, it.Quantity, available)
		}
	}
	if len(b.shortages[i]) > 0 {
		return
	}
	for _, it := range r.Order.Items {
		l := levels[it.SKU]
		l.Reserved += it.Quantity
		l.sold += it.Quantity
	}
	b.count(r)
}

// writeLevels has the rows written of which units were sold.
func (b *transaction) writeLevels(levels map[string]*locked) {
	var changed []*locked
	for _, sku := range slices.Sorted(maps.Keys(levels)) {
		if l := levels[sku]; l.sold > 0 {
			changed = append(changed, l)
		}
	}
	for some := range slices.Chunk(changed, maxCases) {
		var sold, tokens, owners, skus []any
		for _, l := range some {
			sold, tokens, owners = append(sold, l.SKU, l.sold), append(tokens, l.SKU, int64(l.Fence.Token)), append(owners, l.SKU, l.Fence.Owner)
			skus = append(skus, l.SKU)
		}
		byCase := "CASE sku" + strings.Repeat(" WHEN ? THEN ?", len(some)) + " END"
		b.end.add("UPDATE skus SET reserved = reserved + "+byCase+", fence = "+byCase+", fence_owner = "+byCase+
			", version = version + 1 WHERE sku IN (?"+strings.Repeat(", ?", len(some)-1)+")", slices.Concat(sold, tokens, owners, skus)...)
	}
}

// maxCases bounds the rows of one UPDATE, which looks for the case of each of them.
const maxCases = 50
