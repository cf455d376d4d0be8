// Package timeout is a delay queue: it calls a handler at a given moment, at least once, never early, and normally
// within milliseconds.
//
// # Model
//
// A timer is a row in the database: kind, id and due time. [Queue.Schedule] writes it in the transaction
// that needs it. So there is a timer if and only if that transaction has committed, and no second
// system has to agree. The kind is the timer's type and names its handler.
//
// An [Index] finds the timers that are due. It has an entry for each, an id with a moment, and gives it
// to the first consumer that claims it. The index is a copy. It may lose entries, keep those of timers that
// are gone, or have a wrong clock. The timer is late then, or a claim finds no row, and the
// reconciler repairs the index from the [Store].
//
// A consumer that dies over a claim has lost an entry, too. The overdue scan repairs both faults, so
// that claims need no leases.
//
// A handler decides by its own rows, in one transaction, with a conditional UPDATE. So it has its
// effect once, however often it is called. [Queue.Cancel] in the same transaction, and [Committed], end
// the timer with the effect.
//
//	Schedule -> row (commit) -> push -> flusher -> Index.Schedule
//	                                                    |
//	loop: Index.Claim -> Store.Load -> Handler -> Store.Delete
//	                                                    |
//	leader: look-ahead scan, rebuild -> Index.Schedule;  overdue scan: Store.ClaimOverdue -> Handler
//
// # Guarantees
//
// Each is the name of a test on fake time. Package faults has those on real servers.
//
//   - A timer fires on time while everything works, and never early by the clock of the
//     database (FiresOnTimeAndNeverEarly, DueIsRoundedUp, IndexClockSkew).
//   - A committed timer is not lost when a process dies: before the push
//     (CrashBeforePushIsNotLate), with the timer in progress (ConsumerDiesOverItsBatch), or
//     all processes (AllConsumersDownAcrossTheDueTime). It is not lost with the index
//     (WipeIsRebuiltSoonestFirst, LostWritesAreFoundBeforeTheyAreDue, IndexAwayWhileTimersComeIn,
//     EveryInstanceScansWithoutLockServiceAndIndex).
//   - In random histories of all of these together, six invariants hold (Invariants).
//   - A consumer that was paused has no second effect (PausedConsumerHasNoSecondEffect). A slow handler keeps
//     the timers that an overdue scan has claimed (SlowHandlerKeepsItsTimers).
//   - A timer that fails does not delay others (PoisonDoesNotDelayOthers). It is tried a bounded number of times, also
//     if it kills the process (TimersOfADeadConsumerAreRetriedAlone, TimerThatKillsConsumersIsMarkedDead), and kept as
//     dead until an operator decides (RedriveAndFireNowReopenDeadTimers).
//   - Failures that are not the timer's count no attempt (UnavailableCountsNoAttempt, DatabaseOutageCountsNoAttempt,
//     OverdueScanOfTimersInProgressCountsNoAttempt, NotDueCountsNoAttempt, AgainCountsNoAttempt).
//   - A timer that gets a later due time while it is handled fires again
//     (MovedWhileHandledFiresAgain, DueAgainWhileHandledFiresAgain).
//   - A push does not block (PushNeverBlocks), and a process claims no more than it has
//     free slots for (SlowHandlerLimitsClaims).
//   - A process that ends requeues its timers at once (DrainFinishesWhatRuns, RollingRestart).
//   - A canary claims nothing and leads nothing (CanaryClaimsNothing, EntriesWithoutLocalConsumerAreNotPushed).
//     Timers of a partition without consumers are reassigned (OrphanedPartitionIsReassigned), and the index
//     keeps none of its entries (OrphanedPartitionLeavesNoEntries).
//   - A healthy system repairs nothing (SteadyStateRepairsNothing), so a repair is worth an alert.
//
// # Not guaranteed
//
//   - One call per timer. A lost reply, a paused process or an overdue scan may lead to another call, also
//     at the same time in two processes.
//   - The order of due times. It is kept roughly.
//   - A deadline for handlers. If a handler takes longer than 2 s, the overdue scan of another process may
//     call it for the same timer.
//   - One effect outside of the database. A handler that sends a message must make it repeatable.
//   - Writes that the database loses.
//
// # Time
//
// No decision compares two of the three clocks.
//
//   - The database's clock decides whether a timer may fire. A claim loads its rows and the time in one
//     statement, and requeues what is not due.
//   - The index's clock decides which entries can be claimed. If it is ahead, each timer is claimed once in
//     vain. If it is behind, timers are late by as much, until the overdue scan finds them.
//   - The process's monotonic clock measures waits: until the moment that the last reply of the index
//     announced, and at most Options.Poll.
//
// A message of the index shortens a wait. If it is lost, the next poll finds the same timers
// (LostMessagesCauseNoDelay).
//
// # Failures and what they cost
//
//	a scheduler dies before its push     nothing, if due in more than about 3 s; else the overdue scan
//	the index is away                    the overdue scan: about 3 s, then about 1 s; pushes are dropped
//	the index is wiped                   the rebuild, soonest first: seconds for a million
//	the index lost its last writes       nothing: the leader looks 30 s ahead
//	a consumer dies or is paused         the overdue scan, about 3 s
//	the database is away                 until it is back, plus a pause of at most 5 s
//	the lock service is away             nothing, but for the leader's repairs: then the fallback scan, about 6 s
//	a leader is paused                   the TTL of its lease, on top of the overdue scan
//	a message is lost                    nothing for delays above the poll, else at most the poll
//	a handler fails                      halving, then a backoff for the one timer
//
// # Leaders
//
// Each kind and partition has one leader, which runs the overdue scan, reassigns orphaned timers and repairs the
// index. No timer depends on it. The comment of [LeaderRoles] has the details.
//
// # Goroutines
//
// [Queue.Run] starts all goroutines, and waits for them before it returns. A process has one for the flusher, one for
// the index, and one that reads pauses and sends heartbeats. Each kind has the election, the overdue scan and
// reconciler of a leader, and the extension of scanned claims. Each shard has a claim loop, and each batch in progress
// a goroutine, at most four per kind. Only a handler that ignores its context for a second after Config.Drain is left
// behind, and Run returns an error.
package timeout
