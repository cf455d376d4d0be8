package sqltimers

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/timeout"
)

// Load implements [timeout.Store]. If it needs several statements, the time is that of the first one. So a row is never
// judged by a clock later than its content.
func (s *Store) Load(ctx context.Context, kind string, ids []string) (found []timeout.Row, now time.Time, err error) {
	err = s.read(ctx, fmt.Sprintf("load %d timers of %s", len(ids), kind), func() error {
		found, now = nil, time.Time{}
		for chunk := range slices.Chunk(keysOf(kind, ids), keyChunk) {
			rows, at, err := s.engine.where(s.selectByKey(), chunk).timedRows(ctx, s.db)
			if err != nil {
				return err
			}
			if now.IsZero() {
				now = at
			}
			found = append(found, rows...)
		}
		return nil
	})
	if err == nil && now.IsZero() {
		now, err = s.Now(ctx)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return found, now, nil
}

// List implements [timeout.Store]. Until is the last moment that is chosen.
func (s *Store) List(ctx context.Context, f timeout.Filter) (found []timeout.Row, err error) {
	q := s.list(f)
	err = s.read(ctx, "list timers", func() (err error) {
		found, err = q.rows(ctx, s.db)
		return err
	})
	return found, err
}

// list selects a page. The index starts with the state, so a page of all states is
// merged from one page of each.
func (s *Store) list(f timeout.Filter) *query {
	states := []timeout.State{f.State}
	if f.State == "" {
		states = []timeout.State{timeout.Open, timeout.Dead}
	}
	wanted := columns
	if f.Brief {
		wanted = brief
	}
	const order = " ORDER BY next_at, kind, id LIMIT ?"
	q := new(query)
	for i, state := range states {
		if i > 0 {
			q.add(" UNION ALL ")
		}
		if len(states) > 1 {
			q.add("SELECT * FROM (")
		}
		q.add(s.selectFrom("timeouts_next", wanted).text.String()+" WHERE state = ?", state)
		if f.Kind != "" {
			q.add(" AND kind = ?", f.Kind)
		}
		if !f.Until.IsZero() {
			q.add(" AND next_at <= ?", f.Until.UnixMilli())
		}
		if f.After.ID != "" {
			s.engine.after(q, "next_at", millis(f.After.Next), f.After.Kind, f.After.ID)
		}
		q.add(order, page(f.Limit))
		if len(states) > 1 {
			q.add(") AS " + string(state))
		}
	}
	if len(states) > 1 {
		q.add(order, page(f.Limit))
	}
	return q
}

// Count implements [timeout.Store]. It reads the whole of an index.
func (s *Store) Count(ctx context.Context) (counts map[timeout.Shard]map[timeout.State]int, err error) {
	err = s.read(ctx, "count timers", func() error {
		counts = make(map[timeout.Shard]map[timeout.State]int)
		rows, err := newQuery("SELECT kind, lane, state, COUNT(*)"+s.engine.from("timeouts_next")+
			" GROUP BY kind, lane, state").query(ctx, s.db)
		_, err = collect(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
			var shard timeout.Shard
			var state timeout.State
			var n int
			if err := rows.Scan(&shard.Kind, &shard.Partition, &state, &n); err != nil {
				return none, err
			}
			if counts[shard] == nil {
				counts[shard] = make(map[timeout.State]int)
			}
			counts[shard][state] = n
			return none, nil
		})
		return err
	})
	return counts, err
}
