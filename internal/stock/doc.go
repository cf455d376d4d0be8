// Package stock counts and reserves the units of SKUs, defines the strategies that prevent overselling, and audits the
// count.
//
// # Columns and ledger
//
// A SKU has two columns: on_hand, the units that exist, and reserved, the units that open orders reserve.
// The difference is for sale:
//
//	available = on_hand - reserved
//
// Four movements change the columns. Each appends a row to the ledger in the same transaction. A fifth movement
// changes no units (see Fencing):
//
//	RESERVE  reserved += q                  an order is placed
//	CONFIRM  on_hand  -= q, reserved -= q   an order is paid
//	RELEASE  reserved -= q                  an order is cancelled or expires
//	RESTOCK  on_hand  += q                  units arrive
//	REBASE                                  the token offset is raised
//
// So columns, ledger and orders contain the same facts. An [Audit] compares the three, and finds every unit that was
// sold twice or lost. The sign of a column proves nothing. Two transactions that read the same level and write the same
// result sell one unit twice, and the column is not negative.
//
// # Strategies
//
// A [Strategy] is a lock and an update. The [Lock] is held around the transaction. The [Update] is how the
// transaction changes the row. Every SKU has one strategy, from its creation on, so all instances use
// the same strategy for a row.
//
//	name            lock                    update        with several instances
//	naive           none                     write back    oversells
//	local           mutex in this process    write back    oversells; exact with one instance
//	                                                       until units are released meanwhile
//	conditional     none                     conditional   exact
//	optimistic      none                     version       exact, slow when hot
//	for-update      none                     row lock      exact
//	redis-unfenced  lease                    write back    exact until a holder outlives its lease,
//	                                                       or units are released meanwhile
//	redis           lease                    fenced        exact
//	redlock         lease, by a majority     fenced        exact
//	zookeeper       lease                    fenced        exact
//	etcd            lease                    fenced        exact
//	sql             lease, in the database   fenced        exact
//	redis-cohort    lease, for a batch       fenced        exact
//	lua             none; units are taken    row lock      exact
//	                in Redis, for a batch
//
// docs/reference/failure-matrix.md compares the leases. Each fenced strategy also has a cohort, as redis has
// redis-cohort. Orders of the SKU that wait at one instance share one transaction under one lease ([Strategy.Cohort],
// package order). A basket of several SKUs takes the plain lease of each SKU. Cohorts and baskets use the same key, so
// they exclude and fence each other.
//
// lua has batches and no lease. A [Counter] in Redis grants units to a batch before its transaction, which then locks the
// row and checks the level. The counter is advice: its errors cannot make stock wrong, and it alone refuses
// nobody (package redisstock).
//
// If the lock service of a strategy does not respond, [Strategy.Unavailable] returns the error, and orders are
// refused before any lock is taken. So a basket never holds the lock of one SKU while it waits for the failed
// service of another.
//
// naive, local and redis-unfenced decide by a level that was read before the transaction began. CONFIRM, RELEASE and
// RESTOCK are relative updates without a lock, so these three strategies can overwrite them. The others cannot.
//
// # Fencing
//
// A lease can expire while its holder is paused, so a lease proves nothing at the moment of the write. A fenced
// transaction locks the row first, and reads level and fence under the row lock. If a newer lease has written to the
// row, the transaction fails with [dlock.ErrFenced]. Otherwise it writes its own fence with the level, and the row lock
// excludes all others until the commit. A comparison without the row lock, or only in the last statement, is not
// enough. An older holder could write between the newer holder's read and write, and both comparisons would pass.
//
// Fencing tokens are as reliable as their counter. Redis, Redlock and SQL start the counter at the clock, and raise
// it if a row has accepted a higher token ([dlock.CounterRaiser]). ZooKeeper and etcd count transactions. If they
// lose their data, they count from the start, and the row refuses their tokens. As soon as it is clear that the
// tokens will not catch up before the deadline of an order, the order fails with [ErrFencesLost]. Nothing of the SKU
// is sold until an operator calls [Service.Rebase]. Rebase raises the offset of the SKU to at least the fence that
// the row has accepted. The offset is added to the token of every later lease:
//
//	fence in the row = base + token of the lease
//
// The base is the token offset. It is read before the lease is requested, and a [Claim] contains it. So a lease from before
// the loss carries the previous base, and is refused however high its token is. The [FencedError] contains the
// current base, with which an instance that knew the previous base retries.
package stock
