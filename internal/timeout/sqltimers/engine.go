package sqltimers

import (
	"strings"

	"example.com/shop/internal/platform/sqldb"
)

// engine forms the statements for an engine.
type engine struct{ *sqldb.Engine }

// byKey is the suffix of the table that has its rows found by their key.
func (e engine) byKey() string { return e.Index(e.PrimaryKey("timeouts")) }

// from returns the table of timers as an index orders it.
func (e engine) from(index string) string { return " FROM timeouts" + e.Index(index) }

// The conditions on keys below are similar, and differ because of MariaDB. In a table with few more rows than keys, it
// tends to read, lock and wait for all rows, or all of a timer type. EXPLAIN and TestStatementsLockOnlyTheirRows show
// that these forms do not.

// where adds the condition that a row has one of the keys to a SELECT. There has to be one.
func (e engine) where(q *query, keys []key) *query {
	values := ""
	if e.RowValues {
		values = "VALUES "
	}
	q.add(" WHERE (kind, id) IN (" + values + "(?, ?)" + strings.Repeat(", (?, ?)", len(keys)-1) + ")")
	return q.keys(keys)
}

// update begins an UPDATE of the rows of a kind with identities, and adds the condition.
func (e engine) update(assignments *query, kind string, ids []string) *query {
	q := newQuery("UPDATE timeouts"+e.byKey()+" SET "+assignments.text.String(), assignments.args...)
	if e.LocksAsStored {
		return q.add(" WHERE kind = ? AND id IN (SELECT id FROM timeouts WHERE kind = ?", kind, kind).in("id", ids).add(" ORDER BY id" + e.ForUpdate + ")")
	}
	return q.add(" WHERE kind = ?", kind).in("id", ids)
}

// delete begins a DELETE of the rows with keys, of which there has to be one.
func (e engine) delete(keys []key) *query {
	if e.LocksAsStored {
		q := newQuery("DELETE FROM timeouts WHERE (kind, id) IN (SELECT kind, id FROM timeouts")
		return e.where(q, keys).add(" ORDER BY kind, id" + e.ForUpdate + ")")
	}
	if e.RowValues {
		return e.where(newQuery("DELETE FROM timeouts"), keys)
	}
	q := newQuery("DELETE t FROM (SELECT ? AS k, ? AS i" + strings.Repeat(" UNION ALL SELECT ?, ?", len(keys)-1))
	q.keys(keys).add(") AS wanted STRAIGHT_JOIN timeouts AS t" + e.byKey())
	return q.add(" ON t.kind = wanted.k AND t.id = wanted.i WHERE TRUE")
}

// after adds the condition that a row follows (at, kind, id) in the order of a column, kind and id. MariaDB uses an
// index for ranges that are spelled out, and reads everything for row values.
func (e engine) after(q *query, column string, at int64, kind, id string) {
	if e.RowValues {
		q.add(" AND ("+column+", kind, id) > (?, ?, ?)", at, kind, id)
		return
	}
	q.add(" AND (("+column+" = ? AND kind = ? AND id > ?)", at, kind, id)
	q.add(" OR ("+column+" = ? AND kind > ?)", at, kind)
	q.add(" OR "+column+" > ?)", at)
}
