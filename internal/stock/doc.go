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
// same transaction:
//
//	RESERVE  reserved += q              an order is placed
//	CONFIRM  on_hand  -= q, reserved -= q   it is paid
//	RELEASE  reserved -= q              it is cancelled or expires
//	RESTOCK  on_hand  += q              units arrive
//
// So the columns say nothing that the ledger and the orders do not say as
// well, and an [Audit] that compares the three finds every unit that was
// promised twice or lost. The sign of a column proves nothing: two buyers who
// read the same level and write back the same result leave a column that looks
// healthy and a unit that is sold twice.
//
// # Strategies
//
// A [Strategy] is a guard and a write. The [Guard] is what is held around the
// transaction, the [Write] is how the transaction changes the row. Every SKU
// names its strategy when it is created and keeps it, so that all instances
// agree and no two strategies meet on one row.
//
//	name            guard                    write         with several instances
//	naive           none                     write back    oversells
//	local           mutex in this process    write back    oversells; safe alone
//	conditional     none                     conditional   exact
//	optimistic      none                     version       exact, slow when hot
//	for-update      none                     row lock      exact
//	redis-unfenced  lease                    write back    exact until a holder outlives its lease,
//	                                                       or units are given back meanwhile
//	redis           lease                    fenced        exact
//
// naive, local and redis-unfenced decide on a level that was read before the
// transaction began. CONFIRM, RELEASE and RESTOCK are relative updates that
// take no guard, so these three can overwrite them. The others cannot.
//
// # Fencing
//
// A lease can end while its holder is paused, so holding it proves nothing at
// the moment of the write. The fenced write therefore starts its transaction
// by claiming the row with the fence of its lease, and only then reads the
// level. The claim fails with [dlock.ErrFenced] when a newer lease has claimed
// the row, and from the claim to the commit the database keeps everybody else
// off the row. Comparing the fence only when the level is written back would
// not do: an older holder could write between the newer one's read and its
// write, and both comparisons would pass.
package stock
