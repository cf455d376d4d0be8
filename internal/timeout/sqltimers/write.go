package sqltimers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/timeout"
)

// keyChunk is the number of keys per statement: more would not be faster, and MariaDB
// turns lists of 1,000 into subqueries.
const keyChunk = 500

// Insert implements [timeout.Store].
func (s *Store) Insert(ctx context.Context, tx timeout.Tx, partition, trace string, timers []timeout.Timer) error {
	timers = slices.Clone(timers)
	// In the order of the key, so that two transactions do not deadlock. The last one of a key counts, and comes first here.
	byKey := func(a, b timeout.Timer) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
	}
	slices.Reverse(timers)
	slices.SortStableFunc(timers, byKey)
	timers = slices.CompactFunc(timers, func(a, b timeout.Timer) bool { return byKey(a, b) == 0 })
	queries := make([]*query, 0, 1)
	trace = traceable(trace)
	for chunk := range slices.Chunk(timers, s.engine.InsertRows) {
		args := make([]any, 0, 6*len(chunk))
		for _, t := range chunk {
			due := millis(t.Due)
			args = append(args, t.Kind, t.ID, partition, due, due, trace)
		}
		q := newQuery("INSERT INTO timeouts (kind, id, lane, due_at, next_at, trace) VALUES (?, ?, ?, ?, ?, ?)"+
			strings.Repeat(", (?, ?, ?, ?, ?, ?)", len(chunk)-1), args...)
		// A column that is not listed has a default in the schema, also for a row that exists.
		queries = append(queries, q.add(s.engine.Upsert("kind, id",
			"lane", "due_at", "next_at", "attempt", "state", "trace", "last_error", "created_at")))
	}
	_, err := s.run(ctx, fmt.Sprintf("insert %d timers", len(timers)), tx, queries)
	return err
}

// Delete implements [timeout.Store].
func (s *Store) Delete(ctx context.Context, tx timeout.Tx, kind string, ids []string, due []time.Time) (int, error) {
	queries := make([]*query, 0, 1)
	size, last := keyChunk, make(map[string]time.Time, len(due))
	for i, d := range due {
		size, last[ids[i]] = caseChunk, d
	}
	for chunk := range slices.Chunk(keysOf(kind, ids), size) {
		q := s.engine.delete(chunk)
		if due != nil {
			byID(q.add(" AND "), "due_at <=", chunk, func(k key) (string, any) { return k.id, millis(last[k.id]) })
		}
		queries = append(queries, q)
	}
	return s.run(ctx, fmt.Sprintf("delete %d timers of %s", len(ids), kind), tx, queries)
}

// run executes queries in tx, or atomically without one, and returns how many rows
// they affected. An error in tx is as the database returns it: the owner of tx classifies it.
func (s *Store) run(ctx context.Context, what string, tx timeout.Tx, queries []*query) (n int, err error) {
	if tx != nil {
		return execAll(ctx, tx, queries)
	}
	if len(queries) == 0 {
		return 0, nil
	}
	err = s.write(ctx, what, len(queries) > 1, func(tx timeout.Tx) (err error) {
		n, err = execAll(ctx, tx, queries)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// updates returns the statements that give rows new values.
func (s *Store) updates(rows []timeout.Row, assignments string, args ...any) []*query {
	var queries []*query
	ids := byKind(rows)
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		for chunk := range slices.Chunk(ids[kind], keyChunk) {
			queries = append(queries, s.engine.update(newQuery(assignments, args...), kind, chunk))
		}
	}
	return queries
}

// execAll executes queries and returns how many rows they affected.
func execAll(ctx context.Context, tx timeout.Tx, queries []*query) (n int, err error) {
	for _, q := range queries {
		result, err := tx.ExecContext(ctx, q.text.String(), q.args...)
		if err != nil {
			return 0, err
		}
		affected, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		n += int(affected)
	}
	return n, nil
}

// Move implements [timeout.Store]. A dead timer is open again.
func (s *Store) Move(ctx context.Context, tx timeout.Tx, kind, id string, due time.Time) (r timeout.Row, err error) {
	at := millis(due)
	move := func(tx timeout.Tx) error {
		// The number of changed rows does not show whether there is one: it may be due then already.
		rows, err := s.engine.where(s.selectByKey(), []key{{kind, id}}).add(s.engine.ForUpdate).rows(ctx, tx)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return timeout.ErrNotFound
		}
		r = rows[0]
		r.Due, r.Next, r.Attempt, r.State = moment(at), moment(at), 0, timeout.Open
		_, err = execAll(ctx, tx, s.open(rows, at))
		return err
	}
	if tx != nil {
		err = move(tx)
	} else {
		err = s.write(ctx, fmt.Sprintf("move timer %s of %s", id, kind), multiple, move)
	}
	if err != nil {
		return timeout.Row{}, err
	}
	return r, nil
}

// open returns the updates that make timers open, due at a moment.
func (s *Store) open(rows []timeout.Row, at int64) []*query {
	return s.updates(rows, "due_at = ?, next_at = ?, attempt = 0, state = ?", at, at, timeout.Open)
}
