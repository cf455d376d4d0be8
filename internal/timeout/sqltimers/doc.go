// Package sqltimers is a [timeout.Store] on database/sql: SQLite, MariaDB from 10.6
// or MySQL from 8.0. It owns the tables of the delay queue, and exports their definition as [Schema].
//
// # Tables
//
// timeouts has one row per timer that is open or dead; a timer that is handled has
// none, so the table is as large as what is pending. Each way to read it has an index
// that starts with what it looks for and ends with the key, so that a page costs what
// is in it, whatever the size of the table:
//
//	timeouts_next     state, next_at, kind, id, ...     ClaimOverdue, List, Redrive, Count
//	timeouts_lane     lane, state                       Reassign
//
// The statements name their index. A table of timers is empty at one moment and has a
// million rows at the next, statistics lag behind, and a plan that sorts would lock
// every row that is due instead of those that it takes.
//
// timeout_kinds has a row per kind that was ever paused, timeout_lanes one per instance
// and partition, which is the column lane.
//
// # Time
//
// Moments are whole milliseconds since 1970. Those that callers pass are rounded up,
// so that no timer is early; those that the store takes itself are the database's
// clock, read by the statement that uses them, and rounded down.
//
// # Transactions
//
// A method that is given a transaction runs its statements in it and nothing else: no
// retry, because the server may have rolled back the whole of it. The error still has
// the driver's in its chain, so that the owner of the transaction can decide. Without
// one, a method is atomic, and failures that pass by themselves (deadlock, lock
// timeout, snapshot conflict, a busy file) are tried again from the start, at most five
// times with jitter. When the connection breaks while it commits, the outcome is open;
// every method may be repeated then, though ClaimOverdue counts another attempt and Delete,
// Redrive and Reassign report only what is left.
//
// Rows are locked in the order of their key where a statement can choose, and ClaimOverdue
// skips locked rows, so that it never waits for a handler.
//
// # What it expects of the pool
//
// MariaDB and MySQL: READ COMMITTED, as locks on gaps would make schedulers wait for
// the overdue scan; statements may be prepared or interpolated, and matched or changed rows
// be counted. SQLite: WAL, a busy timeout, and transactions that begin IMMEDIATE (the
// parameter _txlock of the driver): one that begins with a read and then writes fails
// when another transaction wrote meanwhile. The store lets one of its own writers at a time
// into SQLite; those of other stores and processes are waited for by the busy timeout.
package sqltimers
