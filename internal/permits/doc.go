// Package permits bounds how many operations of a service are in flight, over all of its instances.
//
// A rate limit (package ratelimit) admits the same load when operations become slow; this bound admits less by itself. But it
// does not stop one customer who takes it all.
//
// # Model
//
// Each instance holds one lease of some of the permits, in a [Store], and gives them
// out from memory. In Redis (redispermits) the store is a hash. One script renews the lease, reports what the instance
// needs, and divides the permits of all instances again.
//
//	Take -> in use < capacity?  --yes--> done: no call
//	             |no
//	             v
//	        the next call reports the need --granted, or others are about to give up some--> done, or once more
//	             |all have as much as they may
//	             v
//	        ErrConcurrencyLimit
//
// The division is max-min fair: everybody has what it needs, and no more than an equal part
// of what those who need less have left. What nobody needs is divided equally, so a burst finds it at each instance.
// The need is about the most that was in use or refused within the last second.
//
// Permits move in two calls, so that none is used twice: an instance lowers its capacity when
// the answer says that it has more than its target, and its next call says what it has
// given up. Calls are TTL/12 apart, or TTL/100 if somebody waits.
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
// When the store is back, the leases have expired, and the others still serve their shares. So an instance that finds no lease at all
// stops all growth until each has leased again what it serves: for half a TTL if the instance was alone, or had a
// lease that the store has lost; for a Timeout and a moment if it has just started, or was
// paused. The first instance of a key finds no lease either, and callers of Take wait for that time (RestartOfAll).
//
// Calls are numbered. If a connection is slow, Redis can execute a call after its successors,
// when its instance uses more than it says. Such a call changes nothing (LateCallChangesNothing).
//
// # Not guaranteed
//
//   - The bound, while the store goes away, if an instance uses more than its share. The others
//     serve their shares at once, and its operations beyond its share finish. The alternative is to refuse orders
//     that nothing hinders.
//   - The bound, for an instance that is cut off while others are not. The store gives its
//     permits to them after a TTL, and it serves up to P/N on its own, until its return (CutOffInstanceServesItsShare).
//   - The bound, for a process that was paused for longer than a TTL. Its operations continue, and it may begin one or two more
//     before its timers have run. What must never happen twice needs a fencing token.
//   - The bound after a failover to a replica that lagged.
//   - First come, first served among the callers of Take.
//
// # Failures and what they cost
//
//	an instance dies or pauses   its permits, for a TTL
//	an instance is cut off       up to P/N operations beyond the bound
//	the store is away            permits beyond the share of each instance
//	the store is back            growth beyond that, for half a TTL
//	the store is slow            a Take that finds no permit here waits, at most two Timeouts
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
// [Limiter.Run] makes all calls to the store, and starts no goroutine.
package permits
