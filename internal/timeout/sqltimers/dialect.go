package sqltimers

import "strings"

// Dialect names the engine of a database.
type Dialect int

// The engines.
const (
	SQLite Dialect = iota + 1
	MySQL          // and MariaDB
)

// dialect is what differs between the engines.
type dialect struct {
	now        string // expression: milliseconds since 1970, rounded down
	rows       int    // in one INSERT
	lock       string // suffix of a SELECT that locks its rows
	skipLocked string // the same, passing over rows that are locked
	joins      bool   // whether a DELETE finds rows by a join with their keys
	byKey      string // makes a statement find rows by their key
	keys       string // precedes a list of keys
	useIndex   string // what precedes the name of an index, and
	endIndex   string // what follows it
	conflict   string // what follows the rows of an INSERT: %k is the key
	proposed   string // the value that an INSERT wanted for column %c
	rowValues  bool   // whether (a, b) > (x, y) uses an index
}

func sqlite() dialect {
	return dialect{
		now:       "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)", // has milliseconds, and no more
		rows:      50,                                                                  // a driver that takes long over many arguments, and no round trips to save
		byKey:     " INDEXED BY sqlite_autoindex_timeouts_1",                           // not that of the state
		keys:      "VALUES ",
		useIndex:  " INDEXED BY ",
		conflict:  " ON CONFLICT (%k) DO UPDATE SET ",
		proposed:  "excluded.%c",
		rowValues: true,
	}
}

func mysql() dialect {
	return dialect{
		now:        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000", // whatever the session's time zone
		rows:       200,
		lock:       " FOR UPDATE",
		skipLocked: " FOR UPDATE SKIP LOCKED",
		joins:      true,
		byKey:      " FORCE INDEX (PRIMARY)",
		useIndex:   " FORCE INDEX (",
		endIndex:   ")",
		conflict:   " ON DUPLICATE KEY UPDATE ",
		proposed:   "VALUES(%c)",
	}
}

// from returns the table of timers as an index orders it.
func (d dialect) from(index string) string {
	return " FROM timeouts" + d.useIndex + index + d.endIndex
}

// The conditions on keys below are similar, and differ because of MariaDB. In a table with few more rows than keys, it
// tends to read, lock and wait for all rows, or all of a timer type. EXPLAIN and TestStatementsLockOnlyTheirRows show
// that these forms do not.

// where adds the condition that a row has one of the keys to a SELECT. There has to be one.
func (d dialect) where(q *query, keys []key) *query {
	q.add(" WHERE (kind, id) IN (" + d.keys + "(?, ?)" + strings.Repeat(", (?, ?)", len(keys)-1) + ")")
	return q.keys(keys)
}

// update begins an UPDATE of the rows of a kind with identities, and adds the condition.
func (d dialect) update(assignments *query, kind string, ids []string) *query {
	q := newQuery("UPDATE timeouts"+d.byKey+" SET "+assignments.text.String(), assignments.args...)
	return q.add(" WHERE kind = ?", kind).in("id", ids)
}

// delete begins a DELETE of the rows with keys, of which there has to be one.
func (d dialect) delete(keys []key) *query {
	if !d.joins {
		return d.where(newQuery("DELETE FROM timeouts"), keys)
	}
	q := newQuery("DELETE t FROM (SELECT ? AS k, ? AS i" + strings.Repeat(" UNION ALL SELECT ?, ?", len(keys)-1))
	q.keys(keys).add(") AS wanted STRAIGHT_JOIN timeouts AS t" + d.byKey)
	return q.add(" ON t.kind = wanted.k AND t.id = wanted.i WHERE TRUE")
}

// upsert returns the end of an INSERT that gives columns of a row that exists their
// new values.
func (d dialect) upsert(key string, columns ...string) string {
	for i, c := range columns {
		columns[i] = c + " = " + strings.ReplaceAll(d.proposed, "%c", c)
	}
	return strings.ReplaceAll(d.conflict, "%k", key) + strings.Join(columns, ", ")
}

// after adds the condition that a row follows (at, kind, id) in the order of a column, kind and id. MariaDB uses an
// index for ranges that are spelled out, and reads everything for row values.
func (d dialect) after(q *query, column string, at int64, kind, id string) {
	if d.rowValues {
		q.add(" AND ("+column+", kind, id) > (?, ?, ?)", at, kind, id)
		return
	}
	q.add(" AND (("+column+" = ? AND kind = ? AND id > ?)", at, kind, id)
	q.add(" OR ("+column+" = ? AND kind > ?)", at, kind)
	q.add(" OR "+column+" > ?)", at)
}
