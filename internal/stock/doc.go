// Package stock says how units are counted and promised.
//
// # The books
//
// A SKU has two columns: on_hand, the units that exist, and reserved, the
// units that open orders hold. What is for sale is the difference:
//
//	available = on_hand - reserved
//
// Four movements change them, and each appends a row to the ledger in the
// same transaction. A fifth moves no units, see Fencing:
//
//	RESERVE  reserved += q              an order is placed
//	CONFIRM  on_hand  -= q, reserved -= q   it is paid
//	RELEASE  reserved -= q              it is cancelled or expires
//	RESTOCK  on_hand  += q              units arrive
//	REBASE                              fences are counted from another base
//
// So the columns say nothing that the ledger and the orders do not say as
// well, and an [Audit] that compares the three finds every unit that was
// promised twice or lost. The sign of a column proves nothing: two buyers who
// read the same level and write back the same result leave a column that looks
// healthy and a unit that is sold twice.
//
// # Strategies
//
// A [Strategy] is a lock and an update. The [Lock] is what is held around the
// transaction, the [Update] is how the transaction changes the row. Every SKU
// names its strategy when it is created and keeps it, so that all instances
// agree and no two strategies meet on one row.
//
//	name            lock                    update        with several instances
//	naive           none                     write back    oversells
//	local           mutex in this process    write back    oversells; safe alone
//	conditional     none                     conditional   exact
//	segmented       none                     segmented     exact
//	optimistic      none                     version       exact, slow when hot
//	for-update      none                     row lock      exact
//	redis-unfenced  lease                    write back    exact until a holder outlives its lease,
//	                                                       or units are given back meanwhile
//	redis           lease                    fenced        exact
//	redlock         lease, by a majority     fenced        exact
//	zookeeper       lease                    fenced        exact
//	etcd            lease                    fenced        exact
//	sql             lease, in the database   fenced        exact
//	redis-cohort    lease, for a batch       fenced        exact
//	lua             none; units are taken    row lock      exact
//	                in Redis, for a batch
//
// What the leases differ in is said in docs/choosing.md. The fenced ones have a cohort each, as redis
// has: with that ([Strategy.Cohort]), orders of the SKU that arrive at one instance while the lock is
// held or waited for go into one transaction, under one lease; see package cohort. A basket of
// several SKUs goes by itself and takes the plain lock of each, which is the lease of the same
// key, so that cohorts and baskets exclude and fence each other.
//
// segmented spreads the units of a SKU over several rows when it is created. An order locks one of
// them, so that orders of one SKU are committed side by side, where on a single row each waits for
// the commit of the one before. What is for sale is the sum of the rows: when none has enough alone,
// an order takes from several, and it is refused only when all of them together have too little.
//
// lua has batches as well, and no lease: a [Counter] grants units to a batch before its transaction,
// which locks the row and looks. The counter is advice, so nothing that becomes of it makes the
// books wrong, and nobody is refused by it alone; see package redisstock.
//
// A strategy whose lock service does not answer is [Strategy.Away]: its orders are refused before
// any lock is taken, so that a basket does not hold the lock of one SKU while it waits for the
// dead service of another.
//
// naive, local and redis-unfenced decide on a level that was read before the
// transaction began. CONFIRM, RELEASE and RESTOCK are relative updates that
// take no lock, so these three can overwrite them. The others cannot.
//
// # Fencing
//
// A lease can end while its holder is paused, so holding it proves nothing at
// the moment of the write. The fenced write therefore starts its transaction
// by locking the row, reads its level and its fence under that lock, and
// fails with [dlock.ErrFenced] when a newer lease has written to the row. From
// there to the commit the database keeps everybody else off it, and with the
// level the fence of this lease is written. Comparing fences without the row's
// lock, or only when the level is written back, would not do: an older holder
// could write between the newer one's read and its write, and both comparisons
// would pass.
//
// A fence is as good as the counter behind it. Redis, Redlock and SQL begin theirs at the clock, and a
// row that has accepted more raises them ([dlock.CounterRaiser]). ZooKeeper and etcd count
// transactions: one that comes back without its data counts from the start, and the row refuses
// what it gives. Orders then fail with [ErrFencesLost] as soon as it is clear that they will not catch up,
// and sell nothing, until somebody calls [Service.Rebase]. That gives the SKU a new base, at least the fence
// that its row has accepted, which is added to the token of every lease from then on:
//
//	fence in the row = base + token of the lease
//
// The base is read before the lease is asked for, and a [Claim] names it: a lease of before the loss
// comes with the base of before, and is refused however high its token is. The [FencedError] carries
// the present base, with which an instance that knew the old one tries again.
package stock
