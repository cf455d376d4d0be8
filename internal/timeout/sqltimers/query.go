package sqltimers

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"example.com/shop/internal/timeout"
)

// query is a statement that is put together, with its arguments.
type query struct {
	text strings.Builder
	args []any
}

func newQuery(text string, args ...any) *query {
	return new(query).add(text, args...)
}

// add appends text, and the arguments that belong to its placeholders.
func (q *query) add(text string, args ...any) *query {
	q.text.WriteString(text)
	q.args = append(q.args, args...)
	return q
}

// in appends the condition that a column has one of the values. There has to be one.
func (q *query) in(column string, values []string) *query {
	q.text.WriteString(" AND " + column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")")
	for _, v := range values {
		q.args = append(q.args, v)
	}
	return q
}

// keys appends the arguments for pairs of kind and identity.
func (q *query) keys(keys []key) *query {
	for _, k := range keys {
		q.args = append(q.args, k.kind, k.id)
	}
	return q
}

// query runs a query whose rows the caller collects.
func (q *query) query(ctx context.Context, tx timeout.Tx) (*sql.Rows, error) {
	return tx.QueryContext(ctx, q.text.String(), q.args...)
}

// rows runs what selectFrom or selectByKey began.
func (q *query) rows(ctx context.Context, tx timeout.Tx) ([]timeout.Row, error) {
	rows, _, err := q.timedRows(ctx, tx)
	return rows, err
}

// timedRows is rows, and the time, which is zero if there are none.
func (q *query) timedRows(ctx context.Context, tx timeout.Tx) (all []timeout.Row, now time.Time, err error) {
	rows, err := q.query(ctx, tx)
	all, err = collect(rows, err, func(rows *sql.Rows) (r timeout.Row, err error) {
		r, now, err = scanRow(rows)
		return r, err
	})
	return all, now, err
}

// selectFrom begins to select columns of rows and the time, as an index orders them.
func (s *Store) selectFrom(index, columns string) *query {
	return newQuery("SELECT " + columns + ", " + s.engine.Millis + " AS moment" + s.engine.from(index))
}

// selectByKey begins to select rows and the time by their keys.
func (s *Store) selectByKey() *query {
	return newQuery("SELECT " + columns + ", " + s.engine.Millis + " AS moment FROM timeouts" + s.engine.byKey())
}

// collect scans all rows of a result and closes it, so that the connection is free
// for the next statement. It takes both results of QueryContext.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows) (T, error)) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
