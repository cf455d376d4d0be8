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
// SKU in high demand has a bound of its own, so the instance stays open to other SKUs. The bound of the instance does not count an
// order of one SKU while it waits for its lease, or for a row that another transaction keeps locked. A burst after a calm finds as many places as
// one worker serves in a second, at least 32. An order that joins others in a cohort is not counted here; it still takes a permit.
//
// # The queue
//
// All orders of an instance wait in one queue for their leases and for the transaction that stores them; see commitQueue in
// commit_queue.go. Orders that are ready at the same time share a transaction (group commit), whatever they buy. Orders of a SKU that
// is sold with a cohort share its lease (lock cohorting). Each order keeps its own deadline, maximum wait, permit and
// idempotency key, and does not fail because of another order. An attempt with an unknown outcome is repeated with the same order. The
// repetition first reads whether it is stored ([Request].Uncertain). An order with wait=0 waits at most 50 ms in the queue.
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
