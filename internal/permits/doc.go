// Package permits bounds what a service does, over all of its instances: how many
// operations are in flight ([Limiter]), and how often each key may begin one ([Rates]).
//
// The two answer different questions. A rate admits the same load when operations
// become slow, and what is in flight grows without limit; a bound on operations in
// flight admits less by itself. And that bound does not stop one customer who takes
// it all; a rate per customer does.
//
// # Model
//
// A distributed semaphore has the permits. To ask it for each operation would cost
// two round trips. So an instance leases permits in blocks, each an ordinary lease
// of the semaphore with a weight, and gives them out itself, from one word of memory
// that holds the capacity (the sum of its blocks) and what of it is in use. A block
// goes back when the instance has not needed it for about a second, or when it has
// more than its share and another one waits.
//
//	Take -> the word: in use < capacity?  --yes--> done: no call
//	             |no
//	             v
//	        Run leases a block of as many as wait now --granted--> done: one call, shared
//	             |held by others
//	             v
//	        ErrSaturated; if the instance has less than its share, Run queues in the semaphore
//
// Because all permits in use are of a block that is leased, the bound of the
// semaphore is the bound of all operations. There is no other counter of them.
//
// Instances are counted by a lease that each holds of a second semaphore, KEY:instances,
// which has as good as no limit. Every TTL/4 each looks at both: how many permits there
// are, how many are held, whether anybody waits, how many instances there are.
//
// # Sizes
//
// With P permits and N instances the share is P/N, at least 1. A block is at most
// P/4N, so that a share consists of several, and exactly as large as what is asked
// for at the moment: a burst strands nothing. Under a load that has lasted for half a
// second, when half of a block is left, one of a quarter of the use is leased in
// advance, but only while half of all permits are free. An idle instance keeps P/16N, at least 1, to have something to begin with;
// it gives that up too when another waits.
//
// If P < 4N a block is one permit, nothing is leased in advance, and a permit goes
// back after its operation, beyond the first (and the first too, if P < N): so the
// queue of the semaphore decides who is next, and not whoever is quickest with the
// permit that it has just got back. Then an operation costs two calls.
//
// # Guarantees
//
// With the names of the tests that hold them, on real servers:
//
//   - Operations in flight are never more than P, whoever is killed or loses its
//     connection while all want more than there is (BoundHoldsOverKills), except as
//     named below.
//   - What an instance had that died is used by others after a TTL and a moment
//     (PermitsOfKilledAreBack); after a proper end at once (EndOfRun).
//   - No instance starves another: one that wants it has about P/N within seconds,
//     whatever the others do (NewcomerGetsItsShare), and of few permits it gets its
//     turn (SmallLimits).
//   - Beyond that permits go where the load is: what is idle comes back (SurplusComesBack),
//     and a burst from nothing may be as large as P (BurstOverAll).
//   - Take waits for no holder, and for the store no longer than Config.Timeout
//     (StartWithoutStore). An overload does not reach the store: refusals cost it
//     next to nothing (CommandsPerRefusal), as permits do (CommandsPerOperation).
//   - When the store stalls, is shut down or loses its data, the bound holds and the
//     service goes on (BoundHoldsOverStall, BoundHoldsOverShutdown, BoundHoldsOverLossOfData).
//   - P can be changed while it is used, by Resize of the semaphore (Resize).
//
// # Without the store
//
// A block is served for as long as its lease is trusted: nine tenths of a TTL after
// the last renewal that was acknowledged. Then an instance is on its own. It serves
// as many as its blocks had, and P/N at most, N as it was last seen (but 1 if that is
// 0 and it had a block). The blocks of all instances were disjoint, and nobody can
// lease while the store is away: so the sum is at most P, whatever each believes N to
// be, and operations that are in flight beyond it are of those blocks. An instance
// that had nothing, because it starts then or because P < N, serves nothing.
//
// When the store is back, its leases have lapsed, and who comes first could take all,
// beside what the others still serve on their own. So after an outage that was longer
// than half a TTL, the least that can have cost anybody a lease, every instance goes
// on with what it served for 5/4 of a TTL, leases that again and no more, and grows
// only after 7/4: by then all have heard, and what was not leased again has ended.
// All the while it counts what the store says is held: what others have it gives up
// at once. A store that lost its data within a moment takes the leases of all: for
// instances that ran all the time that is an outage, too.
//
// # Not promised
//
//   - That the bound holds for an instance that is cut off while others are not. The
//     store has given its blocks to them, and it serves up to P/N on its own: the
//     bound may be exceeded by that for each one that is cut off, until its return
//     (CutOffAlone). A process too starved to renew in time is cut off. The alternative is an instance that refuses everything.
//   - Operations of a block that was lost finish; nothing stops them. A process that
//     is paused for longer than a TTL wakes with up to a block's worth of them, and may begin
//     one or two more before its timers have run. A longer pause of the whole machine
//     is like that. What must never happen twice needs a fence, and a semaphore has none.
//   - That the bound holds over the return of a store for instances that begin at that
//     moment: they do not know that there was an outage. An instance that begins
//     while the store is away knows.
//   - More about the loss of data of the store, as by a replica that lagged, is
//     with redislock.Semaphore. Twice the permits may be out for a TTL.
//   - Fairness beyond P/N. Two instances that both want more share the rest by
//     chance. Unequal load is served well after about a second and not at once: what
//     the others have idle by then is missing until it comes back. Load that wanders
//     between instances faster than that leaves each with the permits of its peak, and
//     these are refused elsewhere: of three instances that took turns at the one
//     lock of SQLite, with 32 orders in flight and 64 permits, one order in ten to
//     one in five was refused. Callers ask again, or the bound is set higher.
//   - That an instance which had no permit when the store went away serves any.
//   - First come, first served among the callers of Take: nobody waits.
//
// # Time
//
// The TTL is measured by the clock of the store and the monotonic clock of the
// process, never one against the other: that is the business of the lease. All else
// here are pauses of the process itself. An instance that finds that it did not run
// for half a TTL does not take the loss of its leases for an outage.
//
// # Failures and what they cost
//
//	an instance dies             its blocks, for a TTL
//	an instance is cut off       what it serves alone is beyond the bound, P/N at most
//	the store is away            permits that were free, and that are beyond P/N of each
//	the store is back            growth, for 7/4 of a TTL
//	the store is slow            a Take that finds nothing here waits, at most Config.Timeout
//	a call fails                 leasing, until the next look, TTL/12 later
//	all permits are in use       ErrSaturated, and at most fifty calls per second
//
// # Costs
//
// A permit is two atomic operations and two small allocations: over a million per
// second on two cores, hundreds of times the rate of one lease for each operation
// (BenchmarkTake). An instance costs the store, whatever its load, two counts every
// TTL/4 and two renewals every TTL/3, of all blocks and of its presence: about five
// commands per second with the default TTL. A load that changes costs one command for each block.
//
// # Goroutines
//
// [Limiter.Run] is one, and starts one for each lease that it gives back and one while
// the instance queues; it waits for them. All calls to the store are made there. Take
// starts none.
//
// # Rates
//
// [Rates] is the generic cell rate algorithm, by the library redis_rate: one script
// for each operation, since a customer's few operations are not worth leasing. Those who
// ask while a round trip is under way share the next one (RatesShareRoundTrips). It fails
// open: when Redis fails or takes longer than RatesConfig.Timeout, each instance decides
// by a token bucket per key for RatesConfig.Cooldown, so that
// one operation per cooldown waits, not each. The bucket has the part of one instance
// of the rate. Then a key can begin up to its burst again. The buckets are bounded in
// number; who can use more keys than that in a moment has as many bursts, so a key
// must cost something: that of an account, not that of a header.
package permits
