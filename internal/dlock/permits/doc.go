// Package permits limits how many operations of a service are in flight, over all of its instances.
//
// A rate limit (package ratelimit) admits the same load when operations become slow. This limit then admits less by
// itself. But it does not prevent that one customer uses all permits.
//
// # Model
//
// Each instance leases some of the permits from a [Store], and grants them from memory. In Redis (redispermits) the
// store is a hash. One script renews the lease, reports how many permits the instance needs, and divides the
// permits of all instances again.
//
//	Take -> in use < capacity?  --yes--> done: no call
//	             |no
//	             v
//	        the next call reports the need --granted, or others are about to give up some--> done, or once more
//	             |all have as much as they may
//	             v
//	        ErrConcurrencyLimit
//
// The division is max-min fair. Every instance has what it needs, and at most an equal part of what the instances
// with a smaller need leave. Permits that no instance needs are divided equally, so a burst finds some at each
// instance. The need is about the most that was in use or refused within the last second.
//
// Permits move in two calls, so that none is used twice. An instance lowers its capacity when the response says
// that it has more than its target. Its next call reports the permits that it has given up. Calls are TTL/12 apart,
// or TTL/100 while callers wait.
//
// If there are fewer permits than instances, as many instances have one as there are permits, and the turn changes
// every TTL/3.
//
// # Why this is not package redissem
//
// A semaphore grants permits and takes none back. On redissem the limit holds, but the first instance under load keeps
// all permits: in NewcomerGetsItsShare two newcomers had none after 40 s. ShareAfterPause and SmallLimits fail too,
// because a semaphore does not know an instance without a permit. redissem also keeps a member of a sorted set for
// each permit: a lease of 3,900 takes Redis 4.5 ms, and one of 4,000 fails. Here a lease is one field.
//
// # Guarantees
//
// Each names its test, on real servers:
//
//   - At most P operations are in flight, whichever instances are killed or lose their connections under full load
//     (BoundHoldsOverKills). The exceptions are below.
//   - Other instances use the permits of a dead instance after a TTL and a moment (PermitsOfKilledAreBack). Those of a
//     stopped instance are free at once (EndOfRun).
//   - No instance starves another. An instance that needs permits has about P/N within a moment
//     (NewcomerGetsItsShare), also after a pause (ShareAfterPause). Of few permits it gets its turn (SmallLimits).
//   - All other permits go to the load (SurplusComesBack). A burst from nothing may be as large as P
//     (BurstOverAll).
//   - Take waits for no operation to end, and for the store at most two Timeouts (StartWithoutStore). Refusals cost
//     the store next to nothing (CommandsPerRefusal), and so do permits (CommandsPerOperation).
//   - Without the store every instance serves its share, P/N, from the first call that fails to the first that
//     succeeds, and after that (ShareWithoutStore).
//   - If the store stalls, is shut down or loses its data, the limit holds among instances that use at most their
//     shares (BoundHoldsOverStall, BoundHoldsOverShutdown, BoundHoldsOverLossOfData). It also holds if the first
//     request comes from an instance that has just started (NewcomerAfterLossOfData, NewcomerAfterOutage,
//     NewcomerIsFirstAfterOutage) or was paused (PausedIsFirstAfterOutage).
//   - P can be changed while it is used (Resize).
//
// # Without the store
//
// When a call fails, an instance serves P/N, at least 1, with the last known N. It reports this as [Stats.Degraded],
// and [Stats.Unshared] counts the permits that were granted that way. All shares together are P. An instance that never
// had a response serves 1. With [Limiter.Start], there is no such instance.
//
// When the store has recovered, the leases have expired, and the other instances still serve their shares. So an
// instance that finds no lease at all stops all growth until each instance has leased what it serves. That takes
// half a TTL if the instance was alone, or had a lease that the store has lost. It takes a Timeout and a moment if
// the instance has just started or was paused. The first instance of a key finds no lease either, and callers of
// Take wait for that time (RestartOfAll).
//
// Calls are numbered. A slow connection can let Redis execute a call after later ones, when its instance uses more
// permits than the call reports. Such a call changes nothing (LateCallChangesNothing).
//
// # Not guaranteed
//
//   - The limit while the store becomes unavailable, if an instance uses more than its share. The others serve
//     their shares at once, and the operations beyond that share finish. The alternative would refuse orders that
//     nothing hinders.
//   - The limit for an instance that is cut off alone. The store gives its permits to others after a TTL, and the
//     instance serves up to P/N until it returns (CutOffInstanceServesItsShare).
//   - The limit for a process that was paused for longer than a TTL. Its operations continue, and it may begin one
//     or two more before its timers have run. An operation that must never happen twice needs a fencing token.
//   - The limit after a failover to a replica that lagged.
//   - First come, first served among the callers of Take.
//
// # Costs
//
// A permit is two short critical sections and two small allocations (BenchmarkTake). An
// instance sends the store one command every TTL/12, whatever its load. While permits move it sends at most one every
// TTL/100: four per second with the default TTL. The time of the command grows with the number of instances.
//
// # Retry-After
//
// Retry-After is the time in which as many callers could be admitted as are refused per second. It is 1 s to 30 s, and
// up to twice that at random.
//
// [Limiter.Run] makes all calls to the store, and starts no goroutine.
package permits
