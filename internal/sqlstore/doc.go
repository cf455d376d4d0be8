// Package sqlstore stores stock and orders in SQL: SQLite in a file, MariaDB and MySQL, or PostgreSQL. It implements
// [order.Store] and [stock.Store]. No other package uses gorm or the schema.
//
// Statements are raw SQL: most need a lock, an index hint or the clock of their dialect, which gorm's clauses do not have.
// gorm expands lists of arguments and scans rows. Migrations are numbered files and 170 lines of
// code, as every instance applies them at its start, under a lock, and alongside instances of the version before.
//
// # Transactions
//
// One order, one batch of orders of a SKU, or several batches are one transaction: stock rows in SKU order, then
// orders, items and ledger. Several batches share statements: one statement locks the rows of all SKUs, and each
// table then gets one statement. A shared transaction waits 40 to 200 ms for its rows, and then leaves out the batches
// whose rows are locked ([order.ErrCommitAlone]).
//
// Any error rolls back the whole transaction, also where the server would roll back only the statement. Deadlocks,
// snapshot conflicts and a busy database are retried at most five times, with jitter. A lock timeout is not
// retried: it fails with [stock.ErrRowLocked], because the transaction has used a connection for two seconds. Stale
// fencing tokens and version conflicts are not retried here, because they need a new lease or a new read.
//
// If a connection breaks during COMMIT, the outcome is unknown. For a new order, the store then reads the order's id
// with a lock, which waits for the broken session and so finds the outcome. A settlement is repeated; its
// conditional UPDATE makes that safe. A restock or an extension is repeated only with an idempotency key, and fails
// otherwise with [order.ErrOutcomeUnknown].
//
// # Isolation between SKUs
//
// Package bulkhead decides which transactions may wait for which rows: payments, restocks, expiries, and orders that are
// committed alone. Those that write to one SKU use at most a quarter of the connections, or two. They wait for a place
// before they use a connection. A transaction that writes
// to several SKUs gets all its places at once, and waits in all their queues meanwhile. The last free place of a SKU
// is for the first waiter. Payments and cancellations go before purchases.
//
// After a lock timeout, the SKUs of that transaction admit no other transaction until their rows are found unlocked or
// changed. A poll of all such rows finds that out, ten times a second. If the row is locked and unchanged for three
// seconds, transactions of the SKU fail until a poll succeeds. Expiries wait for no such row.
//
// # The leader
//
// The leader has one row, of package sqlcluster. Each transaction of its work begins with this row, on condition that its
// term continues. The row stays locked until the commit, so the work of two leaders is serialized, and that of a former
// leader is refused. The table terms is that of earlier versions.
//
// # Lock order
//
// The leader, counters of limits, orders, stock, timers, keys, each by primary key in ascending order. A cancellation locks its
// order and then the counters. Expire is the exception: it skips
// locked rows. It waits only for stock rows, in ascending order and before it locks anything else. While it holds
// another stock row, it waits only for rows that were unlocked a moment before. [Store.PurgeOrders] locks orders, and then ledger entries.
//
// # Idempotency keys
//
// The response to a request with a key is the last row that its transaction inserts. Duplicate requests conflict at a
// row that both change, or at that last row: one commits, and the others roll back and return its response. So every
// response that was sent is committed, and a request whose effect is committed can safely be sent again. Keys are
// compared byte by byte. [Store.PurgeAnswers] deletes old responses.
//
// # Limits
//
// If a limit applies to an order, the transaction locks the counters of the customer. The comment of usage has the
// details.
//
// # Expiry
//
// The transactions of an order store and delete its timer through the scheduler passed to [Store.WithTimers]. Without
// timers, orders still read as expired in time. Expire uses a transaction per batch: it locks the rows of the orders
// and then their stock rows, and skips rows that others have locked. Orders that lack only stock rows get a second
// transaction, which waits for these rows first. If that wait times out, Expire leaves the SKU out for some seconds,
// so a locked row delays the expiry of no other SKU.
//
// # Time
//
// created_at and expires_at are microseconds since 1970 by the clock of the database. Only that clock decides whether an
// order has expired. A transaction that pays, cancels, extends or dequeues an order locks the order's row, and then
// reads the clock once. The ledger has that time. The transaction may commit after the expiry. So a reader that finds an
// order open and late reads it again with a lock, which waits for such a transaction. A final status never changes.
//
// # Engines
//
// MariaDB and MySQL sessions run at READ COMMITTED, count matched rather than changed rows, and time out on a row lock
// after two seconds. The server ends transactions that are idle for two seconds. So a process that is paused inside a
// transaction keeps no rows locked for longer. SQLite runs in WAL mode with BEGIN IMMEDIATE. Writers of one process
// queue for its only write lock; writers of other processes wait at most one second at a time.
//
// PostgreSQL sessions have the same limits.
//
// On a Galera node no statements share a packet, because the node may roll a transaction back between two of them. A row
// lock does not reach another node, so a transaction writes each row that guards its decision. Reads and transactions
// begin when the node has what other nodes have committed.
//
// The stock columns are signed and have no CHECK, so an oversold SKU can be paid for, cancelled and audited.
package sqlstore
