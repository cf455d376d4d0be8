// Package order says what an order is and what may be done with it.
//
// # States
//
//	                    pay
//	          PENDING ---------> CONFIRMED
//	         /   |    cancel
//	  placed/    +-------------> CANCELLED
//	       /     |    deadline
//	      /      +-------------> EXPIRED
//	QUEUED
//	      \           cancel
//	       +-------------------> CANCELLED
//	       |  nothing to be had, or not placed in time
//	       +-------------------> REJECTED
//
// The four on the right are final: an order that was read in one of them never has another state. The
// lock of the order's row decides each step, with one reading of the clock after the lock is held. So
// exactly one of a payment, a cancellation and an expiry that meet happens. An order
// that nobody paid reads as EXPIRED from expires_at on, and a queued one as REJECTED,
// whatever the row says: the clock is the database's, and no two clocks are ever compared.
//
// Only PENDING holds units. A queued order is a promise to try, and not open in the books.
//
// # Expiry
//
// Every order has a timer in package timeout, which is stored, moved and deleted
// in the order's own transactions and fires once the order has expired.
// [Service.Expire] then gives the units back. A timer is a hint: one that is
// lost, late, early or doubled changes nothing about which orders expire, only
// about when their units can be sold again.
//
// # Placing an order
//
// [Service.Place] takes a permit if there is a bound on how many orders are being placed,
// then the locks of the order's SKUs (package stock says which), commits stock, order,
// offers and ledger in one transaction, and then gives all of it back. Losing the lock, a
// stale fence and a version conflict are no answer to a customer: they are tried again, each
// time under new locks, until the request's deadline. The order's id is chosen before
// the first attempt, and its row can exist only once, so an attempt whose
// outcome was lost is never applied twice.
//
// Under overload the instance refuses orders before the permits are used up. While orders are refused, those in flight are at most twice
// the rate of answers times the latency of an order that begins alone, as in BBR. Orders that share transactions may be three times that:
// one that waits for the transaction before its own takes twice the latency. A SKU that many want is measured and bounded by itself,
// so it does not close the instance to others. Orders that wait for a lock do not lower a bound, and one that takes more than a second is
// not counted. An order that joins others in a cohort needs no place.
//
// An order of one SKU that is sold with a cohort is committed together with others of this
// instance (package cohort). It has its own deadline, patience, permit and key all the same, and
// none of them fails for the sake of another. An attempt whose outcome was lost is repeated
// with the same orders, and begins by looking which of them are stored ([Request].Uncertain). When units
// are short, one read of the level refuses all orders that were waiting before it and want more
// than there is; the next ones need another read, since units come back without a lease. An order
// that is to wait for nothing (wait=0) stands in the line for 50 ms at most. A basket
// goes by itself, under the plain leases of its SKUs.
//
// # Group commit
//
// Batches that wait at the same time are committed in one transaction, whatever they sell: all of their rows are locked in SKU
// order by one statement, the orders are decided one after the other, and each table gets one statement. Two such transactions
// are open at most, and no two with the same SKU (TestTransactionsHaveSKUsOfTheirOwn). A batch that comes when fewer are open, and none with a SKU of its own
// for less than 250 ms, begins at once, so a lonely order waits for nobody (TestBatchesThatWaitShareATransaction). Strategies that decide by what they read before the transaction (naive, local,
// redis-unfenced, optimistic) have a transaction per order, and so have queued orders and those whose outcome is unknown.
//
// A stale fencing token or a shortage is the answer to its own batch. A poison order, a panic or a key that another
// instance stores at the moment costs the others a repetition in halves (TestPoisonCostsOthersARepetition). A row that
// somebody else keeps locked costs them 200 ms, once: its batch goes on alone, and so do those that follow, until the row is
// free (TestSharedTransactionLeavesLockedRows). Those of a segmented SKU stay alone for 10 s if
// a row of it was locked twice. If the reply to COMMIT is lost, the store looks which orders are there
// (TestLostReplyToASharedCommit).
//
// Where units are counted ahead ([stock.Counter]), a batch or basket takes them before its
// transaction. An order that gets none is refused if one read of the level, for all of the batch,
// says so too, and otherwise goes to the database with the others. One in doubt always does: it may
// have its units already.
//
// # When it cannot be placed at once
//
// [Preference] is what the customer prefers. Two things can be waited for, and they are not
// the same. A lock that somebody holds is free again in milliseconds; the order stands in
// its queue, with its permit. Units of a SKU that is sold out may come back in minutes, or
// never; the order stands in the line of package waitlist, and has given everything else
// back. When the patience for locks is over, the order is refused ([stock.ErrLockHeld]), or
// put into the queue, where timers try to place it ([Service.PlaceQueued]) until
// Config.QueueLife is over. Its time to be paid begins when it is placed.
//
// # Once
//
// A [Request] and a [Target] may carry the key of the HTTP request that they come from
// (package idempotency). The answer is committed with the effect; the refusal of a new order, if it is final, is
// committed alone. A request that changes nothing about an order stores nothing. It is decided anew when it is repeated: an order in
// a final state gives the same answer again, a queued or pending one may have changed. A request that finds an answer stored does
// nothing, and gives that answer.
//
// # Limits
//
// A SKU may have a limit of units per customer, and a customer a limit of open orders. Both
// are decided in the transaction that places the order, behind a lock on the customer's row,
// so that orders which arrive together cannot pass together. What has expired does not
// count, though its units may not be back yet.
package order
