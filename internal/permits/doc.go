// Package permits bounds how many operations of a service are in flight, over all of its instances.
//
// Package ratelimit answers a different question. A rate admits the same load when operations
// become slow, and what is in flight grows without limit; a bound on operations in
// flight admits less by itself. And that bound does not stop one customer who takes
// it all; a rate per customer does.
//
// # Model
//
// Each instance holds one lease of some of the permits, in a [Store], and gives them
// out from one word of memory. In Redis (redispermits) the store is a hash, and one script renews the lease, reports what the instance
// needs, and divides the permits of all instances again.
//
//	Take -> in use < capacity?  --yes--> done: no call
//	             |no
//	             v
//	        the next call reports the need --granted, or others are about to give up some--> done, or once more
//	             |all have as much as they may
//	             v
//	        ErrSaturated
//
// The division is max-min fair: everybody has what it needs, and no more than an equal part
// of what those who need less have left. What nobody needs stays where it brings each
// instance to an equal part of all: so a burst, and the loss of the store, find it there.
// The need is the most that was in use or refused within the last second, about.
//
// Permits move in two steps, so that none is used twice: an instance lowers its capacity when
// the answer says that it has more than its target, and says by its next call what it has
// given up. That is a matter of two calls, TTL/12 apart, or TTL/100 if somebody waits.
//
// If there are fewer permits than instances, as many instances have one as there are permits,
// and the turn changes every TTL/3.
//
// # Guarantees
//
// With the names of the tests that hold them, on real servers:
//
//   - Operations in flight are never more than P, whoever is killed or loses its
//     connection while all want more than there is (BoundHoldsOverKills), except as
//     named below.
//   - The permits of an instance that died are used by others after a TTL and a moment
//     (PermitsOfKilledAreBack); after a proper end at once (EndOfRun).
//   - No instance starves another: one that needs it has about P/N within a moment
//     (NewcomerGetsItsShare), also one that was paused (ShareAfterPause), and of few permits
//     it gets its turn (SmallLimits).
//   - Beyond that permits go where the load is (SurplusComesBack), and a burst from nothing
//     may be as large as P (BurstOverAll).
//   - Take waits for no operation to end, and for the store no longer than two Timeouts
//     (StartWithoutStore). An overload does not reach the store: refusals cost it
//     next to nothing (CommandsPerRefusal), as permits do (CommandsPerOperation).
//   - Without the store every instance serves its share, P/N, from the first call that fails
//     to the first that succeeds, and after that (ShareWithoutStore).
//   - If the store stalls, is shut down or loses its data, the bound holds among instances that
//     use no more than their shares (BoundHoldsOverStall, BoundHoldsOverShutdown, BoundHoldsOverLossOfData),
//     also if one that has just started is the first to ask (NewcomerAfterLossOfData, NewcomerAfterOutage,
//     NewcomerIsFirstAfterOutage), or one that was paused (PausedIsFirstAfterOutage).
//   - P can be changed while it is used (Resize).
//
// # Without the store
//
// When a call fails, an instance serves P/N, at least 1, N as it was last seen. [Stats.Degraded]
// says so, and [Stats.Unshared] counts the permits that were given out like that. The shares
// of all are P together. An instance that has never had an answer serves 1.
//
// When the store is back, the leases have expired, and the first instance could take all
// permits although the others still serve their shares. So an instance that finds no lease at all
// stops all growth until each has leased again what it serves. If the instance was alone, or had a
// lease that the store has lost, growth stops for half a TTL. If the instance has just started, or was
// paused, growth stops for a Timeout and a moment. The first instance of a key finds no lease either:
// callers of Take wait for that time (RestartOfAll).
//
// Calls are numbered. If a connection is slow, Redis can execute a call after its successors,
// when its instance uses more than it says. Such a call changes nothing (LateCallChangesNothing).
//
// # Not guaranteed
//
//   - The bound, while the store goes away, if an instance uses more than its share: what the
//     others do not need. They serve their shares at once, and its operations beyond its share
//     finish. The bound is exceeded by these until then. The alternative is to refuse orders
//     that nothing hinders.
//   - The bound, for an instance that is cut off while others are not. The store gives its
//     permits to them after a TTL, and it serves up to P/N on its own, until its return (CutOffInstanceServesItsShare).
//   - Operations of a lease that has expired finish; nothing stops them. A process that
//     is paused for longer than a TTL wakes with its operations, and may begin one or two more
//     before its timers have run. What must never happen twice needs a fencing token.
//   - The bound after a failover to a replica that lagged: half a TTL may not be enough to
//     learn of it.
//   - First come, first served among the callers of Take.
//
// # Failures and what they cost
//
//	an instance dies             its permits, for a TTL
//	an instance is cut off       what it serves degraded is beyond the bound, P/N at most
//	an instance is paused        nothing; after a TTL its permits go to others, until it asks
//	the store is away            permits beyond the share of each instance
//	the store is back            growth beyond that, for half a TTL
//	the store is slow            a Take that finds no permit here waits, at most two Timeouts
//	all permits are in use       ErrSaturated
//
// # Costs
//
// A permit is a few atomic operations, two short critical sections and two small allocations
// (BenchmarkTake). An instance costs the store one command every TTL/12, whatever its load,
// and at most one every TTL/100 while permits move: four per second with the default TTL.
// The command takes a time that grows with the number of instances.
//
// # Retry-After
//
// Refused callers are asked to stay away until as many as are refused per second could have
// been admitted: 1 s at least, 30 s at most, and up to twice that at random.
//
// # Goroutines
//
// [Limiter.Run] is one. It makes all calls to the store, and starts none.
package permits
