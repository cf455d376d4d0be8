// Package sqlstore keeps the books in SQL: SQLite in a file, or MariaDB/MySQL.
// It is the only package that knows gorm and the schema, and it fulfils
// [order.Store] and [stock.Store].
//
// # Transactions
//
// One order, one batch of orders for one SKU, or several batches are one transaction: stock
// rows in SKU order, then orders, lines and ledger. Several batches share statements: one locks the rows of all SKUs, and
// each table gets one. They wait 200 ms for rows, and then those whose rows are locked are left out ([order.ErrCommitAlone]). Any error inside it rolls
// the whole of it back, also where the server would have undone only the
// statement. Deadlocks, snapshot conflicts and a busy database
// are then tried again from the start, at most five times with jitter. A lock timeout fails with
// [stock.ErrRowLocked], as the transaction has had a connection for two seconds. Stale
// fences and version conflicts are not: they need a new lease or a new read,
// which only the caller can get.
//
// A connection that breaks while COMMIT is under way leaves the outcome open.
// Placing an order then asks for the order's id with a locking read, which
// waits for the broken session's rows and so learns what became of them;
// settling one is repeated, which its conditional UPDATE makes safe. A restock
// and an extension leave nothing to recognise them by: with a key they are repeated,
// and the key tells, and without one they fail with [order.ErrOutcomeUnknown].
//
// # Isolation
//
// Those who write to the row of one SKU have a quarter of the connections at most, or two, and wait for one of these places
// before they have a connection. A transaction that writes to several SKUs gets its places all at once, and is in line
// for all of them meanwhile. The last free place of a SKU is for the oldest in line. After
// a lock timeout nobody is admitted to its SKUs until their rows have been found free, or written to, by one of the looks at all such rows, or
// until they have been probed. If the probe of a SKU ends with a lock timeout as well, or looks have found its row locked and not written to
// for three seconds, everybody fails there at once until such a look.
//
// # Leader roles
//
// The work of leaders is fenced. The table terms has a row per role, with the term of its leader. An elected leader
// claims the role. The first statement of each of its transactions is an UPDATE of that row, which requires
// that term and owner are its own. So the row is locked until the commit, and the work of two leaders is
// serialized. Once another leader has claimed the role, the previous one gets a [*SupersededError].
//
// The number is the term of the election plus an offset, which begins with 0. An election can begin to count again,
// because its service was emptied or replaced. There is one leader at a time, so a leader whose term continues after it
// has read the row is later than every term in the row. If its number is too low, the offset is raised until it is the
// next one. A leader whose term has ended cannot claim the role. If two elections share a database, as with
// instances of different flags, their leaders supersede each other, and still never work at the same time.
//
// The row also has the time of the leader's last work. While no leader can be elected, the fallback scan locks the row
// and compares that time; see [Store.VacantRole].
//
// # Order of locks
//
// Terms, then customers, then orders, then stock, then timers, then keys, each by its primary key in
// ascending order; the segments of a SKU come with its row. The exception is Expire, which skips rows that
// are locked. It waits for stock rows alone, in ascending order and before it locks anything else. A row for which it waits while
// it holds another stock row has come free a moment before.
//
// # Segments
//
// A segmented SKU is a row of skus and 15 of sku_segments, and its columns are the sums of theirs,
// read in one statement: levels, lists and the audit do that. Every movement is a relative update of one
// row, or of several in ascending order, the SKU's own first, and may go to any of them: an instance
// that knew nothing of segments would move units in the SKU's own row, and the sums would be right. Confirming
// and releasing an order go to one row in turn, expiries and restocks are spread evenly.
//
// An order looks at all rows before its transaction, takes its units from one that has enough, by a
// conditional update, and locks no other. If none has enough, it locks all of them and takesAcross its units.
// If the row that it chose was drained meanwhile, it begins again with that, as the rows before
// it can no longer be locked in order. It is refused if all rows together have too few, at the moment of the
// look or while they are locked. So no unit is lost sight of because it is in another row.
//
// # Keys
//
// The answer to a request with a key is the last row that its transaction inserts.
// Equal requests meet at the rows that both change, or else at that row: the first commits, and
// the others roll back and give its answer. Whatever is committed can therefore be repeated, and
// whatever is answered is committed. Keys are compared byte by byte. [Store.PurgeAnswers] deletes old ones.
//
// # Limits
//
// An order that a limit concerns first locks the row of its customer, and then counts, so
// that two orders of a customer count one after the other. All is counted for one moment. Orders that
// were open and late at that moment are locked and read again: a payment that was in time may be under way.
// Nothing is locked or counted when no limit concerns the order. A limit of
// open orders holds only if all instances have it.
//
// # Queue
//
// A queued order is a row with lines, a timer of [order.PlaceTimer], and no ledger. Placing it
// changes its row where placing another one inserts it. Its row is locked before the
// stock, as settling does, and its time is judged then.
//
// # Expiry
//
// An order's timer is stored and deleted in the order's own transactions, by
// whatever [Store.WithTimers] was given; without it orders still read as expired
// in time. Expiring is a transaction per batch: it locks the orders' rows and then their stock rows, and
// skips those that another transaction has locked. Orders that lack stock rows only get a second transaction, which
// waits for these rows first. If the wait ends with a lock timeout, the SKU is left out for some seconds, so a row
// that stays locked delays the expiry of no other SKU.
//
// # Time
//
// created_at and expires_at are microseconds since 1970 by the database's
// clock, and only that clock decides whether an order has expired. A transaction that pays, cancels, extends
// or dequeues an order reads the clock once, after it has locked the order's row. The ledger has the time of this reading.
// The transaction may commit after the order has expired. So a reader that finds an order open and late
// reads it again with a lock, which waits for such a transaction. A status that was read as final is final.
//
// # Engines
//
// MariaDB and MySQL sessions run at READ COMMITTED, count matched rather than
// changed rows, and give up on a row lock after two seconds. The server ends a
// transaction that does nothing for two seconds, so a process that is paused
// in the middle of one keeps its rows from others no longer. SQLite runs in
// WAL mode with BEGIN IMMEDIATE; the writers of one process queue for its
// single write lock, those of several processes wait for it at most one
// second at a time.
//
// Several writing nodes of a Galera cluster are not supported. A row lock does not reach another node, so limits per
// customer and final statuses would not hold. Let all instances write to the same node; [Store.Galera] detects a node.
//
// The stock columns are signed and have no CHECK: an oversold SKU can still be
// paid for, cancelled and audited.
package sqlstore
