// Package sqllock implements [dlock.Locker] on database/sql: SQLite from 3.35, MariaDB from 10.6, MySQL from 8.0 or
// PostgreSQL from 14.
// It needs no service besides the application's database. To take a key costs a durable commit, and to release it
// another one. Keys are not granted in order of arrival, because waiters poll.
//
// The package owns its table, whose definition is [Schema].
//
// # Data
//
// The table leases has one row per key that was ever taken:
//
//	name        the key, up to 255 bytes
//	owner       PROCESS-NUMBER, new for every call of Acquire and TryAcquire; empty if the key is free
//	fence       the fencing token of the holder, or of the last holder
//	forced      the last token that was force-released
//	since_at    when the key was granted
//	expires_at  when the lease expires if it is not renewed; 0 if the key is free
//
// Times are microseconds since 1970 by the clock of the database, which each statement reads. No clock of a client is
// used. A row remains after the release, so that the token never decreases. The token is max(last+1, now), so it
// does not decrease if the row is deleted or the table restored from a copy. If the clock is also behind,
// [Locker.RaiseCounter] raises the token.
//
// # Operations
//
// Each operation is one statement outside a transaction. So a client that dies or is paused keeps no row locked,
// and there is no separate COMMIT whose reply could be lost.
//
//	TryAcquire    INSERT, or UPDATE if the lease of the row has expired or is the caller's own
//	Acquire       the same; then SELECT by key, and the same again when the lease has expired
//	Release       UPDATE WHERE name, owner, fence and not expired
//	renewal       UPDATE WHERE (name, owner, fence) is one of up to 100, and not expired
//	rollback      UPDATE WHERE name and owner
//	Inspect       SELECT by key
//	ForceRelease  UPDATE WHERE name and not expired
//
// The insertion is the upsert of the engine on the primary key, so of two concurrent callers one finds the row of the
// other. SQLite and PostgreSQL return the token by RETURNING. MariaDB and MySQL return it as LAST_INSERT_ID, or 0 if another owner
// has the key. A refused attempt changes nothing, so it is neither written nor flushed.
//
// Renewal and release compare owner and token, and never insert, so a late holder cannot take the key back. If a
// renewal changes fewer rows than it names, a SELECT finds which leases are lost, and why.
//
// An uncontended Acquire and its Release cost one round trip each, both with a flush. A lease adds a hundredth of a
// statement every TTL/3.
//
// # Waiting
//
// A waiter polls by a SELECT, which takes no lock. So it delays neither the holder nor, on SQLite, other writers of
// the file. Pauses have decorrelated jitter ([backoff.Decorrelated]) and end when the current lease expires. Which
// waiter is next is random. Each waiter polls for itself, so the load on the database grows with the waiters. If many
// callers of a process want the same key, decorate the Locker with package share: then one of them polls. A hand-off
// takes half a pause on average, 50 ms at most by default. The rate of an uncontended key is bounded by the flush, and
// that of a contended key by the pauses.
//
// # Unknown outcomes
//
// A statement whose reply was lost may have been executed, or may be executed later. All statements name the owner,
// so they can be repeated. To take a key that the owner has is a renewal with the same token. To release a key that
// it does not have has no effect.
//
//   - A failed renewal is repeated.
//   - A waiter whose attempt got no reply finds the outcome by its next poll. It continues until the database has
//     not responded for a TTL. An attempt that arrives after the release is rolled back
//     (LateAttemptOfAHolderIsRolledBack).
//   - A first attempt without a reply returns [dlock.ErrUncertain] at once, so that callers learn of an outage, and
//     so does a release. A background rollback by owner repeats until the database has responded,
//     twice if nothing was found ([driver.Rollback]). Close waits for it.
//
// An error that the database returned means that nothing changed. Deadlocks, lock timeouts, busy files and stale
// connections are retried within Config.Timeout.
//
// # Failures
//
// If a holder dies, its row remains until the lease expires. A waiter leaves nothing. The database keeps what it has
// committed: a MariaDB that flushes at each commit (innodb_flush_log_at_trx_commit=1) and a SQLite file with
// synchronous=FULL lose no lease. After a restart, holders continue if it took less than the rest of their leases;
// otherwise their lease validity has ended in time.
//
// A failover can lead to a replica that lagged, or whose clock is ahead. Then a second holder is possible until the
// previous holder is notified by its next renewal. The fencing token refuses its late writes. If the protected data
// are in the same database, claim the row first, in the same transaction: lock it, compare the token, and store it.
//
// If the clock of the database is set back, the lease of a holder that has died blocks its key for 2 Config.MaxTTL at most.
// A live holder may lose its lease as in a failover.
//
// # Requirements on the pool
//
// MariaDB and MySQL: any isolation level and time zone, statements prepared or interpolated, matched or changed rows
// counted. The driver needs a read timeout, or a new connection hangs on a silent network. SQLite: WAL, and a busy
// timeout below Config.Timeout; a Locker lets only one of its writers at a time into the file.
//
// Renewals use the same pool. If an application exhausts the pool, leases expire. If that can happen,
// give the locks a pool of their own. A waiter uses a connection only while it polls.
package sqllock
