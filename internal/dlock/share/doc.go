// Package share lets the callers of one process take turns under one grant of a lock.
//
// [New] decorates any [dlock.Locker]. Callers that wait for the same key through one [Locker] make one acquisition at a
// time. A release passes the grant on to the next of them, without a request to the store. It does for a process what a
// cohort lock does for the threads of a NUMA node: Dice, Marathe and Shavit, Lock Cohorting, PPoPP 2012. It pays when
// many callers of few processes want one key and hold it briefly ("ours, share" in bench/locks). Without waiters it costs
// little, and it buys nothing where a process has one caller per key, as the cohorts of the shop.
//
// # Guarantees
//
// The conformance tests of package dlocktest run on decorated lockers.
//
//   - A grant has at most [Turns] turns, and none begins later than 20 ms after the first (TurnsOfAGrant,
//     OthersWaitForOneGrant). Then the process queues again, during its last turn. So processes get
//     equal numbers of grants from a store with a queue, however many callers they have.
//   - Callers of a process are served in the order of their calls (TestTurnsAreInOrder).
//   - Each turn is a lease of its own. Turn n under a grant with the token T has the token 16*T+n, and the owner of the
//     grant with +n (TurnsOfAGrant). Tokens of a store increase from grant to grant, so those of turns do, and a resource
//     compares them as any others.
//   - The loss of the grant is the loss of the turn, and no turn follows it (LossEndsTheTurns).
//   - The grant is renewed as long as a turn lasts (TurnIsKeptAlive).
//   - A failed acquisition fails all waiters of that moment (TestWaitersShareAFailure). The end of a caller's context, and
//     a panic, are its own affair (TestCallerFailsAlone, TestPanicOfAnAcquisition).
//
// # What it does not do
//
// All clients of a key must be decorated, or none: a token of a plain client is a sixteenth. The place in the queue of
// the store belongs to the caller that acquires. If its context ends, the next caller begins at the end of that queue. A
// limit on the holding time is that of the grant, so a later turn has up to 20 ms less. [dlock.Lease.ValidUntil] is zero
// for a turn. A [dlock.Cond] needs leases of its own Locker, without turns. The optional capabilities of a Locker are those of
// the decorated one: if it releases a key by force, the turns end with the grant.
//
// The package starts no goroutine but one that ends at once, when a grant is lost. A timer runs while a grant has waiters.
package share
