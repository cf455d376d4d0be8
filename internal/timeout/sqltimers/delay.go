package sqltimers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/shop/internal/timeout"
)

// caseChunk is smaller than others: a statement compares each row with each CASE.
const caseChunk = 100

// Delay implements [timeout.Store].
func (s *Store) Delay(ctx context.Context, kind string, later []timeout.Later) error {
	return s.fail(ctx, fmt.Sprintf("delay %d timers of %s", len(later), kind), later, func(q *query, later []timeout.Later) {
		byID(q, "next_at =", later, func(l timeout.Later) (string, any) { return l.ID, millis(l.At) })
	}, kind)
}

// MarkDead implements [timeout.Store]. The moment of a dead timer stays that of its last attempt.
func (s *Store) MarkDead(ctx context.Context, kind string, later []timeout.Later) error {
	return s.fail(ctx, fmt.Sprintf("bury %d timers of %s", len(later), kind), later, func(q *query, _ []timeout.Later) {
		q.add("state = ?", timeout.Dead)
	}, kind)
}

// fail records failures of open timers that have not been moved, and what set adds.
func (s *Store) fail(
	ctx context.Context, what string, later []timeout.Later, set func(*query, []timeout.Later), kind string,
) error {
	later = slices.Clone(later)
	slices.SortStableFunc(later, func(a, b timeout.Later) int { return strings.Compare(a.ID, b.ID) })
	var queries []*query
	for chunk := range slices.Chunk(later, caseChunk) {
		ids := make([]string, len(chunk))
		for i, l := range chunk {
			ids[i] = l.ID
		}
		q := new(query)
		set(q, chunk)
		byID(q.add(", "), "attempt =", chunk, func(l timeout.Later) (string, any) { return l.ID, l.Attempt })
		byID(q.add(", "), "last_error =", chunk, func(l timeout.Later) (string, any) { return l.ID, cut(l.Error, errorSize) })
		q = s.engine.update(q, kind, ids)
		byID(q.add(" AND state = ? AND ", timeout.Open), "due_at <=", chunk, func(l timeout.Later) (string, any) { return l.ID, millis(l.Due) })
		queries = append(queries, q)
	}
	_, err := s.run(ctx, what, nil, queries)
	return err
}

// byID adds the assignment of a value per timer to a column, or its comparison with one.
func byID[T any](q *query, operation string, timers []T, value func(T) (id string, value any)) {
	q.add(operation + " CASE id")
	for _, t := range timers {
		id, v := value(t)
		q.add(" WHEN ? THEN ?", id, v)
	}
	q.add(" END")
}

// Redrive implements [timeout.Store].
func (s *Store) Redrive(ctx context.Context, kind string, ids []string) (redriven []timeout.Row, err error) {
	var queries []*query
	for chunk := range slices.Chunk(keysOf(kind, ids), keyChunk) {
		q := s.engine.where(s.selectByKey(), chunk)
		queries = append(queries, q.add(" AND state = ? ORDER BY kind, id"+s.engine.ForUpdate, timeout.Dead))
	}
	err = s.write(ctx, "redrive timers of "+kind, multiple, func(tx timeout.Tx) error {
		redriven = nil
		for _, q := range queries {
			rows, err := s.reopen(ctx, tx, q)
			if err != nil {
				return err
			}
			redriven = append(redriven, rows...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return redriven, nil
}

// reopen opens the dead timers that q selects.
func (s *Store) reopen(ctx context.Context, tx timeout.Tx, q *query) ([]timeout.Row, error) {
	rows, now, err := q.timedRows(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Due, rows[i].Next, rows[i].Attempt, rows[i].State = now, now, 0, timeout.Open
	}
	_, err = execAll(ctx, tx, s.open(rows, now.UnixMilli()))
	return rows, err
}
