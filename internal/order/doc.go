// Package order places, pays, cancels and expires orders. It is the domain, without HTTP, SQL or Redis.
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
//	       |  no units, or not placed in time
//	       +-------------------> REJECTED
//
// The four states on the right are final: an order that was read in one of them never changes again. Each step locks
// the order's row and then reads the clock once. If a payment, a cancellation and an expiry compete, exactly one of
// them succeeds. From expires_at on, an unpaid order reads as EXPIRED and a queued order as REJECTED, whatever its row
// contains. Only the clock of the database decides.
//
// Only a PENDING order reserves units. A queued order reserves nothing.
//
// # Expiry
//
// Every order has a timer in package timeout. The transactions of the order store, move and delete it. When the timer
// fires, [Service.Expire] releases the reservation. A timer does not decide: if it is lost, late, early or duplicated,
// the same orders expire. Only the time at which their units return can change.
//
// # Placing an order
//
// [Service.Place] takes a permit, if permits are configured, and then the locks of the order's SKUs (see package
// stock). It commits stock, order, timer and ledger in one transaction, and releases locks and permit. A lost
// lock, a stale fencing token and a version conflict are retried under new locks until the deadline of the
// request. The id of the order is chosen before the first attempt, and its row can exist only once. So an
// attempt with an unknown outcome is never applied twice.
//
// # Overload
//
// An overloaded instance refuses orders before all permits are in use. While it refuses orders, it bounds the orders in
// flight: twice the rate of completions times the latency of an order that begins alone (BBR). The factor is three for
// orders that share transactions, because an order that waits for the previous transaction takes more than twice the latency. A
// SKU in high demand has a bound of its own, so the instance stays open to other SKUs. Time spent waiting for a lock
// does not lower a bound. An order is not counted for more than a second. An order that joins others in a cohort is not
// counted here; it still takes a permit.
//
// # Cohorts
//
// If a SKU is sold with a cohort, the orders for it that wait at this instance share a lease. Each batch of them shares
// one transaction (see package cohort). Each order keeps its own deadline, maximum wait, permit and idempotency key,
// and does not fail because of another order. An attempt with an unknown outcome is repeated with the same orders. The
// repetition first reads which of them are stored ([Request].Uncertain). If units are short, one read of the level
// refuses all orders that were waiting before the read and want more than is available. Later orders need another read,
// because units can return without a lease. An order with wait=0 waits at most 50 ms for its batch.
//
// # Group commit
//
// Batches that wait at the same time share one transaction, whatever they buy. One statement locks all rows in SKU
// order. Then the orders are decided one by one, and each table gets one statement. An instance has one
// shared transaction open at a time. If none is open, a batch begins at once (TestBatchesThatWaitShareATransaction).
// Fewer than 32 orders that wait when a shared transaction ends do wait for others, for half the time that it took, and
// for 10 ms at most (TestFewWaitForOthers). A batch waits for a transaction for 250 ms at most
// (TestLongTransactionKeepsNobody). These have a transaction each: queued orders, orders with an unknown outcome, and
// those of strategies that decide by earlier reads (naive, local, redis-unfenced, optimistic).
//
// A stale fencing token or a shortage fails its own batch only. Other faults cost the other batches little:
//
//   - A poison order, a panic, or a key that another instance is storing: the transaction is
//     repeated in halves (TestPoisonCostsOthersARepetition).
//   - A row that a foreign transaction keeps locked: 200 ms, once. Batches of that SKU commit alone until the row is
//     free (TestSharedTransactionLeavesLockedRows).
//   - A lost reply to COMMIT: the store reads which orders exist (TestLostReplyToASharedCommit).
//
// With a [stock.Counter], a batch or basket takes its units from the counter before the transaction. An order is
// refused if the counter refuses it and one read of the level confirms the shortage. All other orders go to the
// database. So does an order with an unknown outcome, which may have its units already.
//
// # Waiting
//
// [Preference] says what the customer waits for. A lock is free again in milliseconds: the order waits in the queue
// of the lock and keeps its permit. Units of a sold-out SKU may return in minutes, or never: the order
// waits in package waitlist and holds nothing. If the maximum wait for locks is over, the order is refused
// ([stock.ErrLockHeld]) or queued. Timers retry a queued order ([Service.PlaceQueued]) until Config.QueueLife
// is over. Its time to pay begins when it is placed.
//
// # Idempotency
//
// A [Request] and a [Target] may carry the idempotency key of their HTTP request (package idempotency). The response is
// committed with the effect. The final refusal of a new order is committed alone. A request that changes nothing stores
// nothing, and its retry is decided again. An order in a final state gives the same response; a queued or pending order
// may have changed. A retry that finds a stored response returns that response.
//
// # Limits
//
// A SKU may limit the units per customer, and the service the open orders of a customer. The transaction that places
// the order locks the customer's row and then checks both limits, so concurrent orders cannot exceed them. Expired
// orders do not count, even before their units are released.
package order
