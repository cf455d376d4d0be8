package sqltimers

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/timeout"
)

// forget is how long the last heartbeat of an instance is kept.
const forget = 24 * time.Hour

// Heartbeat implements [timeout.Store].
func (s *Store) Heartbeat(ctx context.Context, partition, instance string) error {
	q := newQuery("INSERT INTO timeout_lanes (lane, instance, seen_at) VALUES (?, ?, "+s.engine.Millis+")", partition, cut(instance, instanceSize))
	q.add(s.engine.Upsert("lane, instance", "seen_at"))
	_, err := s.run(ctx, fmt.Sprintf("heartbeat for partition %s", partition), nil, []*query{q})
	return err
}

// Reassign implements [timeout.Store]. A partition that never had a heartbeat counts as orphaned. It also
// forgets instances without a heartbeat for a day.
func (s *Store) Reassign(ctx context.Context, silent time.Duration, limit int) (n int, err error) {
	const what = "reassign orphaned timers"
	var orphans []timeout.Row
	// A plain read: with locks it would wait for handlers, and a row that changes
	// meanwhile fails the condition of the update.
	err = s.read(ctx, what, func() (err error) {
		orphans, err = s.orphans(silent, limit).rows(ctx, s.db)
		return err
	})
	if err != nil {
		return 0, err
	}
	queries := s.updates(orphans, "lane = ?", timeout.Base)
	for _, q := range queries {
		q.add(" AND state = ? AND lane <> ?", timeout.Open, timeout.Base)
	}
	gone := newQuery("DELETE FROM timeout_lanes WHERE seen_at < "+s.engine.Millis+" - ?", max(silent, forget).Milliseconds())
	err = s.write(ctx, what, multiple, func(tx timeout.Tx) (err error) {
		if n, err = execAll(ctx, tx, queries); err != nil {
			return err
		}
		_, err = execAll(ctx, tx, []*query{gone})
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// orphans selects open timers of orphaned partitions. A heartbeat far in the future is older than a step of the clock.
func (s *Store) orphans(silent time.Duration, limit int) *query {
	return s.selectFrom("timeouts_lane", columns).add(" WHERE state = ? AND (lane < ? OR lane > ?) AND lane NOT IN (SELECT lane FROM timeout_lanes WHERE seen_at - "+
		s.engine.Millis+" BETWEEN ? AND ?) LIMIT ?", timeout.Open, timeout.Base, timeout.Base, -silent.Milliseconds(), silent.Milliseconds(), page(limit))
}
