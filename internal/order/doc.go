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
// The four on the right are final. One conditional UPDATE on status and
// expires_at decides each step, so that of a payment, a cancellation and an
// expiry that meet, exactly one happens, and no lock is needed for it. An order
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
// then the guards of the order's SKUs (package stock says which), commits stock, order,
// lines and ledger in one transaction, and then gives all of it back. Losing the guard, a
// stale fence and a version conflict are no answer to a customer: they are tried again, each
// time under new guards, until the request's deadline. The order's id is chosen before
// the first attempt, and its row can exist only once, so an attempt whose
// outcome was lost is never applied twice.
//
// # When it cannot be placed at once
//
// [Patience] is what the customer prefers. Two things can be waited for, and they are not
// the same. A guard that somebody holds is free again in milliseconds; the order stands in
// its queue, with its permit. Units of a SKU that is sold out may come back in minutes, or
// never; the order stands in the line of package waitlist, and has given everything else
// back. When the patience for guards is over, the order is refused ([stock.ErrGuarded]), or
// put into the queue, where timers try to place it ([Service.PlaceQueued]) until
// Config.QueueLife is over. Its time to be paid begins when it is placed.
//
// # Once
//
// A [Request] and a [Target] may carry the key of the HTTP request that they come from
// (package idempotency). The answer is committed with the effect; a refusal that is final is
// committed alone. Who finds an answer stored has not done anything, and gives that answer.
//
// # Limits
//
// A SKU may have a limit of units per customer, and a customer a limit of open orders. Both
// are decided in the transaction that places the order, behind a lock on the customer's row,
// so that orders which arrive together cannot pass together. What has expired does not
// count, though its units may not be back yet.
package order
