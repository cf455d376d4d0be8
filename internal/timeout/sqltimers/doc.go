// Package sqltimers stores the timers of package timeout in a SQL database: SQLite, MariaDB from 10.6, MySQL from
// 8.0 or PostgreSQL from 14. It owns the tables of the delay queue, and exports their definition as [Schema].
//
// # Tables
//
// timeouts has one row per timer that is open or dead. A handled timer has no row, so the table is as large as the
// number of pending timers. Each query has an index that starts with the columns of its condition and ends with the
// key. So the cost of a page depends on the page, and not on the table:
//
//	timeouts_next     state, next_at, kind, id, ...     ClaimOverdue, List, Redrive, Count
//	timeouts_lane     lane, state                       Reassign
//
// The statements name their index, except on PostgreSQL, which locks only rows that it returns. A table of timers may be empty now and have a million rows a moment later.
// Statistics lag behind, and a plan that sorts would lock every due row instead of the rows that it takes.
//
// timeout_kinds has a row per timer type that was ever paused. timeout_lanes has one row per instance and
// partition other than timeout.Base; the partition is the column lane.
//
// # Time
//
// Times are whole milliseconds since 1970. A time from a caller is rounded up, so no timer is early. A time that
// the store takes itself is the database's clock, read by the statement that uses it, and rounded down.
//
// # Transactions
//
// A method that is given a transaction runs its statements in it, and retries nothing, because the server may have
// rolled back the whole transaction. The error wraps that of the driver, so the owner of the transaction can
// decide.
//
// Without a transaction, a method is atomic. It retries temporary failures from the start, at most five times with
// jitter: a deadlock, a lock timeout, a snapshot conflict, a busy file. If the connection breaks during the commit,
// the outcome is unknown. Every method may then be repeated. A repeated ClaimOverdue counts another attempt. A
// repeated Delete, Redrive or Reassign reports only the remaining rows.
//
// Rows are locked in the order of their key where a statement can choose. ClaimOverdue skips locked rows, so it
// never waits for a handler.
//
// # Connection settings
//
// MariaDB and MySQL need READ COMMITTED, because gap locks would make schedulers wait for the overdue scan. PostgreSQL needs it because
// it would refuse rows that have changed. Statements may be prepared or interpolated, and the driver may count matched or changed rows.
//
// SQLite needs WAL, a busy timeout, and transactions that begin IMMEDIATE (the parameter _txlock of the driver).
// Otherwise a transaction that reads first and then writes fails if another one has written meanwhile. The store
// runs one of its own writers at a time. For writers of other stores and processes, the busy timeout waits.
package sqltimers
