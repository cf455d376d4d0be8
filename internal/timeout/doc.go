// Package timeout is a delay queue: it calls a handler at a given moment, at least once, never early, and normally
// within milliseconds.
//
// # Model
//
// A timer is a row in the database: kind, id and due time. [Queue.Schedule] writes it in the transaction
// that needs it. So there is a timer if and only if that transaction has committed, and no second
// system has to agree. The kind is the timer's type and names its handler.
//
// An [Index] finds the timers that are due. It has an entry, an id with a moment, for each timer that is due in the
// window: the next minute by default. It gives an entry to the first consumer that claims
// it. The index is a copy. It may lose entries, keep those of timers that are gone, or have a wrong clock. The timer is
// late then, or a claim finds no row.
//
// A look-ahead pass writes the whole window from the [Store], every 20 s. A timer that is due in the
// window is also pushed. Nothing removes an entry: a claim of
// a timer that was cancelled finds no row.
//
// The overdue scan finds the timers of lost entries and of dead consumers in the rows, so that claims need no leases.
//
// A handler decides by its own rows, in one transaction, with a conditional UPDATE. So it has its
// effect once, however often it is called. [Queue.Cancel] in the same transaction, and [Committed], end
// the timer with the effect.
//
//	Schedule -> row (commit) -> if it is due in the window: push -> Index.Schedule
//	look-ahead pass: Store.List -> Index.Schedule
//	loop: Index.Claim -> Store.Load -> Handler -> Store.Delete
//	overdue scan: Store.ClaimOverdue -> Handler
//
// # Guarantees
//
// Each is the name of a test on fake time. Package faults has those on real servers.
//
//   - A timer fires on time while everything works, and never early by the clock of the
//     database (FiresOnTimeAndNeverEarly, DueIsRoundedUp, IndexClockSkew).
//   - A committed timer is not lost when a process dies: before the push
//     (CrashBeforePushIsNotLate, CrashBeforePushOfAShortDelay), with the timer in progress (ConsumerDiesOverItsBatch), or
//     all processes (AllConsumersDownAcrossTheDueTime). It is not lost with the index
//     (WipeIsRebuiltSoonestFirst, LostWritesAreFoundBeforeTheyAreDue, IndexAwayWhileTimersComeIn,
//     EveryInstanceScansWithoutTheIndex).
//   - No timer waits for a leader: there is none. Any instance makes the next pass and the next scan
//     (PassesOutliveInstances, InstanceWithoutDatabaseIsReplaced).
//   - The index has no entry of a timer that is due after the window (IndexHasTheWindow).
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
//   - A canary claims nothing and makes no passes (CanaryClaimsNothing, EntriesWithoutLocalConsumerAreNotPushed).
//     Timers of a partition without consumers are reassigned (OrphanedPartitionIsReassigned).
//   - A healthy system repairs nothing (SteadyStateRepairsNothing), so a repair is worth an alert.
//
// # Not guaranteed
//
//   - One call per timer. A lost reply, a paused process or an overdue scan may lead to another call, also
//     at the same time in two processes.
//   - The order of due times.
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
// A lost message of the index delays nothing beyond the next poll (LostMessagesCauseNoDelay).
//
// # Failures and what they cost
//
//	a scheduler dies before its push     nothing, if due after the next pass; else the overdue scan
//	the index is away                    the overdue scan: about 3 s, then about 1 s; pushes are dropped
//	the index is wiped                   a pass within 1 s; the overdue scan before, about 3 s
//	the index lost its last writes       nothing, if due after the next pass; else the overdue scan
//	a consumer dies or is paused         the overdue scan, about 3 s
//	the database is away                 until it is back, plus a pause of at most 5 s
//	the lock service is away             nothing
//	an instance dies over its pass       nothing: another instance makes the next one
//	a message is lost                    nothing for delays above the poll, else at most the poll
//	a handler fails                      halving, then a backoff for the one timer
//
// # Goroutines
//
// [Queue.Run] starts all goroutines, and waits for them before it returns. A process has one for pushes, one for
// the index, and one that reads pauses and sends heartbeats. Each kind has the overdue scan, the look-ahead passes, and
// the extension of scanned claims. Each shard has a claim loop, and each batch in progress
// a goroutine, at most four per kind. Only a handler that ignores its context for a second after Config.Drain is left
// behind. Its timers fire elsewhere (DrainRequeuesTimersOfAHandlerThatHangs).
package timeout
