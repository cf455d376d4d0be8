// Package redisstock counts the units of a SKU that may still be sold in Redis, ahead of the
// database. It is the counter of the strategy lua: orders take their units in Redis first, all
// that an instance has waiting in one script, and only those that got some go to the database,
// in one transaction. The customer is answered when that has committed.
//
// # The model
//
// Redis is never the truth, and nothing has to be kept in step with it by hand. It has, of each
// SKU, a copy of the row's level and what is taken of it:
//
//	shop:units:{SKU}          version and available of the row, as of that version
//	shop:units:{SKU}:taken    UNITS:DEADLINE by hold, for transactions that are not over
//
// What may be taken is available less what is taken. The row raises its version with every change
// of its level, whoever makes it, so of two levels the later one is known without a clock and
// without an order of messages: a level is learnt if its version is not lower than the one that
// is here.
//
//	Take    learn what is owed; grant each order its units while there are some; note the sum
//	        ... the transaction, which sees the row and knows the level after it ...
//	Settle  the hold is over, and this is the level now: owed to Redis
//	Flush   what is owed, if no Take has brought it
//
// So a unit that was taken and not sold is given back by the end of the hold, whatever ended
// it. Doing that twice is doing it once: it removes a field by a name that nobody else has. And
// a unit that was sold is gone with the level that the transaction left behind.
//
// # Guarantees
//
// What the strategy guarantees does not rest on this package (TestLuaIsExactWhateverRedisSays in
// package sqlstore has its keys wiped, set to more and to fewer, and filled with takings of the
// dead, in the middle of a sale):
//
//  1. No unit is sold twice: the transaction locks the row and looks.
//  2. Nobody is refused who could be served. An order that Redis has no units for is refused only
//     if a read of the row, sent after the order came, says so too. That is one read for all of a
//     batch. If the row has units all the same, the order goes to the database with the others.
//  3. What the row has and Redis has not is for sale at once, and Redis learns it by the way: after
//     a cancellation, an expiry or a restock, of which nobody tells it; after the death of an
//     instance between Take and the commit; after a wipe, where the first one to ask brings the level.
//
// What this package guarantees by itself is named by its tests:
//
//  4. Units that are taken are nobody else's until they are settled (TestTakenUnitsAreTaken), or
//     Config.Life is over (TestTheDeadGiveBack).
//  5. An older level never replaces a later one (TestOlderLevelsAreIgnored), but any level
//     replaces that of another history, which a version shows that is higher than the row's
//     was later (TestAnotherHistoryIsForgotten).
//  6. A hold whose reply was lost is given back with the next one (TestALostReplyTakesNothing).
//
// # Not promised
//
// That Redis grants what there is and no more. Between a COMMIT and its Settle the units of a
// batch are counted twice, in the level that somebody else has brought and in the hold: the next
// orders need a read. After a rollback of Redis to an older state too many are granted, and the
// transaction refuses the rest. Both are over with the next level that is learnt.
//
// That a refusal needs no database. What Redis says is old as soon as somebody cancels, and a
// refusal that was true is worth a read. While a SKU is sold out package order reads first, once for
// all who wait, and asks Redis nothing.
//
// That orders of several instances are served in the order of their arrival: who locks the row first
// is.
//
// # Failures
//
//	Redis does not answer               Take fails after Config.Timeout; orders are refused as with any lock service that is away
//	a reply of Redis is lost            the same, for one batch; its units come back with the next Take, or after Config.Life
//	Redis is emptied                    one read of the row
//	Redis is rolled back, to more       orders that the transaction refuses, until one has
//	Redis is rolled back, to fewer      one read of the row
//	an instance dies with units taken   a read per batch that would need them, for at most Config.Life
//	an instance stops and goes on       the same; its batch is committed late, if the row has the units
//	a reply to COMMIT is lost           orders in doubt go to the database whatever Redis says; it knows their ids
//	the database is away                the transaction fails, and the hold ends
//	Redis comes from another database   its levels lose as soon as they have been seen beside the row's
//
// # What it costs
//
// A round trip to Redis for each batch, and one for the last of a row of batches; none per order. A
// basket of several SKUs takes each by itself, two round trips for each. The script runs in the time that
// it takes to look at the takings that are open: one for each instance, and one for each basket.
// Two keys per SKU, for a day after the last order.
package redisstock
