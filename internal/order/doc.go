// Package order says what an order is and what may be done with it.
//
// # States
//
//	           pay
//	PENDING ---------> CONFIRMED
//	   |    cancel
//	   +-------------> CANCELLED
//	   |    deadline
//	   +-------------> EXPIRED
//
// The three on the right are final. One conditional UPDATE on status and
// expires_at decides each step, so that of a payment, a cancellation and an
// expiry that meet, exactly one happens, and no lock is needed for it. An order
// that nobody paid reads as EXPIRED from expires_at on, whatever its row says:
// the clock is the database's, and no two clocks are ever compared.
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
// [Service.Place] takes the guards of the order's SKUs (package stock says
// which), commits stock, order, lines and ledger in one transaction, and then
// gives the guards back. Losing the guard, a stale fence and a version
// conflict are no answer to a customer: they are tried again, each time under
// new guards, until the request's deadline. The order's id is chosen before
// the first attempt, and its row can exist only once, so an attempt whose
// outcome was lost is never applied twice.
package order
