package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

const (
	// shortWait and longWait are how long a shared transaction waits, at least and at most, for rows and for keys that others
	// store. Meanwhile all orders of the instance wait for it. MySQL limits no insertion: there a key has the wait of the session.
	shortWait, longWait = 40 * time.Millisecond, 200 * time.Millisecond

	// slowWait is the same when the wait was over and no row was locked: the server is slow.
	slowWait = 4 * longWait
)

var (
	// errRowsLocked says that somebody else kept one of the rows locked for as long as a shared transaction waits.
	errRowsLocked = errors.New("sqlstore: somebody else has a row of a shared transaction")

	// errKeyLocked says the same of an idempotency key.
	errKeyLocked = errors.New("sqlstore: somebody else stores a key of a shared transaction")
)

// commitShared commits batches that others wait for. It leaves some for later: those whose rows may be locked, and those whose rows
// or keys stay locked longer than a shared transaction waits.
func (s *Store) commitShared(ctx context.Context, batches []*order.Batch) error {
	for wait := time.Duration(s.rowWait.Load()); ; {
		free := slices.DeleteFunc(slices.Clone(batches), func(b *order.Batch) bool {
			if s.rows.Suspects(skusOfClaims(b)) {
				b.Err = order.ErrRowSuspect
			}
			return b.Err != nil
		})
		if len(free) == 0 {
			return nil
		}
		began := time.Now()
		err := s.commit(ctx, free, wait)
		switch {
		case err == nil:
			s.rowWait.Store(int64(nextWait(wait, time.Since(began))))
			return nil
		case errors.Is(err, errKeyLocked):
			keyed := func(b *order.Batch) bool {
				return slices.ContainsFunc(b.Requests, func(r *order.Request) bool { return r.Key != nil })
			}
			some := slices.ContainsFunc(free, keyed)
			leaveOut(free, order.ErrCommitAlone, func(b *order.Batch) bool { return !some || keyed(b) })
		case errors.Is(err, errRowsLocked):
			s.rowWait.Store(int64(longWait))
			found, err := s.suspect(ctx, free)
			switch {
			case err != nil:
				return err
			case !found && wait == slowWait:
				leaveOut(free, order.ErrCommitAlone, func(*order.Batch) bool { return true })
			case !found:
				wait = slowWait
			}
		default:
			return uncertain(free, err)
		}
	}
}

// nextWait returns how long a shared transaction waits for rows after one that took as long as took, and may have waited up to wait.
// Another instance may have the rows for as long as that, so it is twice as long. It falls slowly, as not every transaction
// has a row that is in demand.
func nextWait(wait, took time.Duration) time.Duration {
	return min(max(2*took, wait-wait/16, shortWait), longWait)
}

// leaveOut has those of batches committed alone that are meant.
func leaveOut(batches []*order.Batch, why error, meant func(*order.Batch) bool) {
	for _, b := range batches {
		if meant(b) {
			b.Err = why
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
	leaveOut(batches, order.ErrRowSuspect, func(b *order.Batch) bool { return slices.ContainsFunc(skusOfClaims(b), taken) })
	return len(skus) > 0, nil
}

// reserveShared locks the rows of all SKUs, and refuses the batches whose fencing tokens are stale. It decides about the
// orders one by one, each all or nothing. The rows are written at the end of the transaction.
func (t *transaction) reserveShared(tx *gorm.DB) error {
	if err := t.lockAll(tx); err != nil {
		return err
	}
	for _, b := range t.batches {
		b.failed = t.admit(b.Claims...)
	}
	t.take(t.locked)
	t.writeAll()
	return nil
}

// lockAll locks the rows of all claims in ascending order, and reads them and the time when they were locked.
func (t *transaction) lockAll(tx *gorm.DB) error {
	var skus []string
	for _, b := range t.batches {
		skus = append(skus, skusOfClaims(b.Batch)...)
	}
	for some := range slices.Chunk(distinct(skus), maxRows) {
		query := t.engine.Locked("*", "skus"+t.engine.ByKey+" WHERE sku IN ? ORDER BY sku"+t.engine.ForUpdate)
		var rows []skuRow
		if err := tx.Raw(t.within(query), some).Scan(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			t.locked[r.SKU] = &level{Level: r.level()}
			t.now = max(t.now, r.ReadAt)
		}
	}
	return nil
}

// writeAll has the rows written whose units were sold.
func (t *transaction) writeAll() {
	var changed []*level
	for _, sku := range slices.Sorted(maps.Keys(t.locked)) {
		if l := t.locked[sku]; l.sold > 0 {
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
		t.end.add("UPDATE skus SET reserved = reserved + "+byCase+", fence = "+byCase+", fence_owner = "+byCase+
			", version = version + 1 WHERE sku IN (?"+strings.Repeat(", ?", len(some)-1)+")", slices.Concat(sold, tokens, owners, skus)...)
	}
}

// maxCases bounds the rows of one UPDATE, which looks for the case of each row.
const maxCases = 50

// distinct returns skus in ascending order, each once.
func distinct(skus []string) []string { return slices.Compact(slices.Sorted(slices.Values(skus))) }
