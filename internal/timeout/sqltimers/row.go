package sqltimers

import (
	"cmp"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/shop/internal/timeout"
)

// columns are those of a row, in the order of scanRow.
const columns = "kind, id, lane, due_at, next_at, attempt, state, trace, last_error, created_at"

// brief are those of the columns that timeouts_next has, in the places of all.
const brief = "kind, id, lane, next_at AS due_at, next_at, 0 AS attempt, state, '' AS trace, '' AS last_error, 0 AS created_at"

// Sizes of columns, in characters.
const (
	traceSize    = 128
	errorSize    = 1000
	instanceSize = 255
)

// scanRow scans the columns of a row, and the time.
func scanRow(rows *sql.Rows) (r timeout.Row, now time.Time, err error) {
	var due, next, created, at int64
	err = rows.Scan(
		&r.Kind, &r.ID, &r.Partition, &due, &next, &r.Attempt, &r.State, &r.Trace, &r.LastError, &created, &at)
	if err != nil {
		return timeout.Row{}, time.Time{}, err
	}
	r.Due, r.Next, r.CreatedAt = moment(due), moment(next), moment(created)
	return r, moment(at), nil
}

func scanString(rows *sql.Rows) (text string, err error) {
	err = rows.Scan(&text)
	return text, err
}

// millis rounds up, so that no timer is early.
func millis(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// cut makes text fit into a column of size bytes. A broken text must not keep its row from being written. PostgreSQL stores no
// zero byte.
func cut(text string, size int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= size {
		return text
	}
	for !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// traceable returns trace if it fits into its column, and nothing otherwise: an order
// does not fail because of its trace.
func traceable(trace string) string {
	if len(trace) > traceSize || strings.ContainsFunc(trace, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return trace
}

// key is the primary key of a timer.
type key struct{ kind, id string }

// keysOf returns the distinct keys of a kind in their order: transactions that lock the same rows
// in the same order do not deadlock.
func keysOf(kind string, ids []string) []key {
	keys := make([]key, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		keys = append(keys, key{kind, id})
	}
	return keys
}

// byKind returns the identities of rows, in order, for each of their kinds.
func byKind(rows []timeout.Row) map[string][]string {
	ids := make(map[string][]string)
	for _, r := range rows {
		ids[r.Kind] = append(ids[r.Kind], r.ID)
	}
	for kind := range ids {
		slices.Sort(ids[kind])
	}
	return ids
}

// page returns how many rows a call with this limit gets at most.
func page(limit int) int {
	return min(cmp.Or(max(limit, 0), 100), 5000)
}
