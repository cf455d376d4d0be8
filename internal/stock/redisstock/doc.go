// Package redisstock counts the units of a SKU that are for sale in Redis. It is the counter of the strategy lua.
// Orders first take their units in Redis, with one script for all orders that wait at an instance. Only the orders that
// got units go to the database, in one transaction. They are answered after its commit.
//
// # Model
//
// The database is the truth. Redis has a copy of the row's level per SKU, and the units that are taken from it:
//
//	shop:units:{SKU}          version and available of the row, as of that version
//	shop:units:{SKU}:taken    UNITS:DEADLINE by hold, for open transactions
//
// Orders may take what is available less what is taken. The row raises its version with every change of its level. So
// the newer of two levels is known without a clock or an order of messages. Redis accepts a level if its version is not
// lower than the stored version.
//
//	Take    applies pending levels; grants each order its units while there are some; stores the sum as a hold
//	        ... the transaction reads the row, and knows the level after it ...
//	Finish  ends the hold with the current level; both are pending until they are sent
//	Flush   sends what is pending, if no Take has sent it
//
// Units that were taken and not sold return at the end of the hold. To end a hold twice has no further effect, because a hold
// has a unique name. Units that were sold are missing in the level that the transaction left.
//
// # Guarantees
//
// The guarantees of the strategy do not depend on this package. TestLuaIsExactWhateverRedisSays in package sqlstore
// deletes its keys, sets them too high and too low, and adds holds of dead instances during a sale.
//
//  1. No unit is sold twice: the transaction locks the row and checks the level.
//  2. No order is refused that could be served. If Redis has no units for an order, it is refused only if a read of the
//     row confirms the shortage. The read is sent after the order arrived. One read serves the whole batch.
//  3. Units that the row has and Redis does not have are for sale at once. Redis gets the level with the next order
//     after a cancellation, an expiry or a restock, which do not notify it. So it does after a loss of its data, and if
//     an instance dies between Take and the commit.
//
// These guarantees are the package's own:
//
//  4. Taken units are not granted again until their hold ends (TestTakenUnitsAreTaken) or
//     Config.Life is over (TestHoldsOfDeadInstancesEnd).
//  5. An older level never replaces a newer one (TestOlderLevelsAreIgnored). Exception: the row, read after a Take, has
//     a lower version than that Take saw in Redis, and Redis still has that version. Then Redis has the level of
//     another database, or of this one before it was restored. It is replaced (TestAnotherHistoryIsForgotten).
//  6. A hold whose reply was lost ends with the next Take (TestALostReplyTakesNothing).
//
// # Not guaranteed
//
//   - Exact grants. Between COMMIT and Finish, units of a batch may be subtracted twice, by a newer level and by the
//     hold. The next orders need a read. After a rollback of Redis to an older state, too many units are granted, and
//     the transaction refuses the excess. The next level ends both.
//   - Refusals without the database. The copy is stale after every cancellation, so a refusal needs a
//     read. While a SKU is sold out, package order reads first, once for all waiting orders, and does not ask Redis.
//   - Order of arrival among instances. The instance that locks the row first is served first.
//
// # Failures and what they cost
//
//	Redis does not respond              Take fails after Config.Timeout; orders are refused as without a lock service
//	a reply of Redis is lost            the same, for one batch; its units return with the next Take, or after Config.Life
//	Redis loses its data                one read of the row
//	Redis is rolled back, to more       the transaction refuses orders, until one order has brought the level
//	Redis is rolled back, to fewer      one read of the row
//	an instance dies with a hold        a read per batch that needs these units, for at most Config.Life
//	an instance is paused with a hold   the same; its batch commits late, if the row has the units
//	a reply to COMMIT is lost           orders with an unknown outcome go to the database, which has their ids
//	the database is unavailable         the transaction fails, and the hold ends
//	Redis has levels of another database  they are replaced at the next comparison with the row
//
// # Costs
//
// A round trip to Redis for each batch, and one after the last batch of a series; none per order. A basket of several SKUs takes each SKU
// separately, two round trips each. The time of the script grows with the open holds: one per instance, and one
// per basket. Redis keeps two keys per SKU, for a day after the last order.
package redisstock
