// Package sqllock is [dlock.Locker] on database/sql: SQLite from 3.35, MariaDB from
// 10.6 or MySQL from 8.0. It needs no service alongside the database that an application
// has anyway, and it costs what that costs: a durable commit to take a key, and another
// one to release it. Keys are not granted in order: waiters poll now and then.
//
// The package owns its table, whose definition it exports as [Schema].
//
// # Data
//
// leases has one row per key that was ever taken:
//
//	name        the key, up to 255 bytes
//	owner       PROCESS-NUMBER, new for every call of Acquire and TryAcquire; empty if the key is free
//	fence       the token of the holder, or of the last one
//	forced      the last token that was ended by force
//	since_at    when the key was granted
//	expires_at  when the lease ends if it is not renewed; 0 if the key is free
//
// Moments are microseconds since 1970, by the clock of the database, which each
// statement reads for itself. No client's clock enters. A holder's row stays when the
// key is released, so that the token never goes back; it is max(last+1, now), so that
// it does not go back either when the row is deleted by hand, or the table restored
// from a copy, unless the clock is behind as well: then [Locker.RaiseCounter] helps.
//
// # Operations
//
// Each is one statement outside a transaction, so no client that stops or dies keeps
// a row locked, and there is no COMMIT of its own to lose.
//
//	TryAcquire   INSERT, or UPDATE if the lease of the row has ended or is the caller's own
//	Acquire      the same; then SELECT by key, and the same again when the lease has ended
//	Release      UPDATE WHERE name, owner, fence and not ended
//	renewal      UPDATE WHERE (name, owner, fence) is one of up to 100, and not ended
//	release    UPDATE WHERE name and owner
//	Inspect      SELECT by key
//	ForceRelease UPDATE WHERE name and not ended
//
// The insertion is the upsert of the engine on the primary key, so that of two who
// come at the same time one finds the row of the other. On SQLite it returns the token
// by RETURNING; on MariaDB and MySQL, which have no such thing in common, as the
// identity of the insertion, by LAST_INSERT_ID: 0 if another owner has the key. What a
// refused attempt does not change is neither written nor flushed.
//
// Renewal and release compare owner and token, and never insert: who comes too late
// cannot take the key back. If a renewal changed fewer rows than it names, a SELECT
// reports which leases are lost, and why.
//
// Rounds: an uncontended Acquire and its Release cost one each, both with a flush. A
// lease adds a hundredth of a statement every TTL/3.
//
// # Waiting
//
// A waiter polls by a SELECT, which takes no lock: neither the holder's renewal and
// release nor, on SQLite, any other writer of the file waits for it. Pauses have
// decorrelated jitter ([backoff.Decorrelated]), and none is longer than what is left of the
// present lease. Of those who acquire a key in one process one asks, the others wait
// for their turn in the order of their calls, and hear of an outage from it
// ([driver.LocalQueue]); which process is next is chance. So the load on the database grows
// with processes and not with waiters, and a hand-off takes half a pause on average,
// 50 ms at most by default. What bounds the rate of an uncontended key is the flush; that
// of a contended one, the pauses.
//
// # Unknown outcomes
//
// A statement whose answer was lost may have been executed, or may be later. All of
// them can be repeated, because they name the owner: to take what one has already is to
// renew it, with the same token; to free what one does not have does nothing. So a
// failed renewal is repeated, and a waiter whose attempt got no answer finds out by its
// next poll whether the key is its own. What arrives after its release is released, too
// (LateAttemptOfAHolderIsRolledBack). It continues until the database has not answered
// for a TTL. A first attempt without an answer returns [dlock.ErrUncertain] at once, so
// that callers hear of an outage, and so does a release; what they may have left is
// released in the background, by owner, until the database has answered, twice if
// nothing was found ([driver.Rollback]); Close waits for it.
//
// What the database itself refuses has changed nothing. Deadlocks, lock timeouts, busy
// files and stale connections are repeated within Config.Timeout.
//
// # What a crash leaves behind
//
// A holder: its row, until the TTL ends. A waiter: nothing. The database: what it has
// committed. A MariaDB that flushes at each commit (innodb_flush_log_at_trx_commit=1)
// and a SQLite file with synchronous=FULL forget no lease; after a restart holders go
// on if it took less than what was left of their leases, and have ended in time
// otherwise. After a failover to a replica that lagged, or to one whose clock is ahead,
// a second holder is possible while the first finds out at its next renewal. The fencing token
// keeps the first one's late writes out; if what it protects is in the same database,
// claim the row with it first, in the same transaction.
//
// # What it expects of the pool
//
// MariaDB and MySQL: any isolation level, any time zone, statements prepared or
// interpolated, matched or changed rows counted. Timeouts of the driver for reading,
// or a connection that is opened in the background over a silent network hangs.
// SQLite: WAL, and a busy timeout less than Config.Timeout; the Locker lets one of
// its own writers at a time into the file.
//
// Renewals go through the same pool as all else. Of those who acquire a key only one
// uses a connection, and only while it asks; but a pool that an application exhausts
// lets leases end. Give locks a pool of their own if that can happen.
package sqllock
