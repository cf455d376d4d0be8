package sqltimers

import (
	"context"
	"time"

	"example.com/shop/internal/timeout"
)

// ClaimOverdue implements [timeout.Store]. A limit of 0 means 100, and none exceeds 5,000.
func (s *Store) ClaimOverdue(
	ctx context.Context, kind, partition string, before, until time.Time, limit int,
) (claimed []timeout.Row, err error) {
	next := millis(until)
	err = s.write(ctx, "claim overdue timers of partition "+partition, multiple, func(tx timeout.Tx) (err error) {
		claimed, err = s.overdue(kind, partition, millis(before), limit).rows(ctx, tx)
		if err != nil {
			return err
		}
		_, err = execAll(ctx, tx, s.updates(claimed, "next_at = ?, attempt = attempt + 1", next))
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range claimed {
		claimed[i].Attempt++
	}
	return claimed, nil
}

// overdue selects and locks the timers to claim. It reads them in the order of the index,
// so that it locks no more than it returns.
func (s *Store) overdue(kind, partition string, before int64, limit int) *query {
	return s.selectFrom("timeouts_next", columns).add(" WHERE state = ? AND next_at < ? AND lane = ? AND kind = ?",
		timeout.Open, before, partition, kind).add(" ORDER BY next_at, kind, id LIMIT ?"+s.engine.SkipLocked, page(limit))
}
