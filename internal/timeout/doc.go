// Package timeout is a delay queue: it calls a handler when a moment has come, at
// least once, never before it, and normally within milliseconds after it.
//
// # Model
//
// A timer is a row in the database, kind and id and due time, written by
// [Queue.Schedule] in the transaction that makes it necessary. So there is a timer if
// and only if that transaction has committed, and no second system has to agree.
//
// Rows are slow to watch. So an [Index] has a hint of each, an id with a moment, and
// gives what is due to whoever claims it first. The index is a copy: it may lose hints,
// keep those of timers that are gone, or have a wrong clock. It
// costs lateness or a call in vain, and the [Store] repairs it. So an index
// needs no leases: what a consumer dies over is one more hint that was lost.
//
// A timer is a hint, too. It says that a handler should look, and the handler's own
// rows say whether there is anything to do. A handler decides and acts in one
// transaction, by a conditional UPDATE, which makes its effect happen once however
// often it is called. [Queue.Cancel] in that same transaction, and [Committed], end the timer with it.
//
//	Schedule -> row (commit) -> push -> flusher -> Index.Schedule
//	                                                    |
//	loop: Index.Claim -> Store.Load -> Handler -> Store.Delete
//	                                                    |
//	leader: look ahead, rebuild -> Index.Schedule;  sweep: Store.Sweep -> Handler
//
// # Guarantees
//
// Each is the name of a test on fake time. Package faults has those on real servers.
//
//   - A timer fires on time while everything works, and never early by the clock of the
//     database (FiresOnTimeAndNeverEarly, DueIsRoundedUp, SkewOfTheIndex).
//   - A committed timer is not lost, whoever dies: before the push
//     (CrashBeforePushIsNotLate), with the timer in hand (ConsumerDiesOverItsBatch),
//     all of them (AllConsumersDownAcrossTheDueTime); nor by what an index forgets
//     (WipeIsRebuiltSoonestFirst, LostWritesAreFoundBeforeTheyAreDue) or cannot
//     answer (IndexAwayWhileTimersComeIn, WithoutLockServiceAndIndexEverybodySweeps).
//   - In random histories of all of these together, the six invariants of the design hold (Invariants).
//   - A consumer that was paused has no second effect (StalledConsumerHasNoSecondEffect),
//     and one that is only slow keeps what it has from a sweep (SlowHandlerKeepsItsTimers).
//   - What fails holds nobody up (PoisonHoldsNobodyUp), is tried a bounded number of
//     times, also if it kills the process (WhatAConsumerDiedOverComesBackAlone,
//     WhatKillsEveryConsumerIsBuried), and is kept as dead until somebody decides
//     (RedriveAndFireNowBringDeadOnesBack).
//   - What is nobody's fault is no attempt (UnavailableIsNobodysFault,
//     DatabaseAwayBurnsNoAttempt, SweepOfWhatIsInHandBurnsNoAttempt, NotDueBurnsNoAttempt, AgainBurnsNoAttempt).
//   - A timer that gets a later due time while it is handled fires again
//     (MovedWhileHandledFiresAgain, DueAgainWhileHandledFiresAgain).
//   - A push does not block (PushNeverBlocks), and a process claims no more than it has
//     free hands for (NoPileUpBehindASlowHandler).
//   - The end of a process costs no sweep (DrainFinishesWhatRuns, RollingRestart).
//   - A canary claims nothing and leads nobody (CanaryClaimsNothing, HintsThatNobodyHearsAreNotPushed);
//     a lane without consumers is not forgotten (LaneWithoutConsumerIsAdopted), and the index
//     keeps nothing of it (LaneWithoutConsumerLeavesNoHints).
//   - In a healthy system nothing is repaired (SteadyStateRepairsNothing), so a
//     repair is worth an alert.
//
// # Not promised
//
// That a handler is called once: a lost answer, a stalled process or a sweep may call
// it again, also at the same time in two processes. That timers fire in the order of
// their due times, except roughly. That a handler which takes longer than
// 2 s is not joined by another process's sweep. That a handler outside the database,
// which sends a message say, has its effect once: it must make the effect repeatable.
// That what the database has lost comes back.
//
// # Time
//
// Three clocks, none of which is compared with another for a decision. The database's says
// whether a timer may act: every claim loads its rows and the time in one statement, and
// what is not due goes back to its moment. The index's says what to claim. The
// process's own, monotonic, says how long to wait: until the moment that the last answer of
// the index announced, translated by the answers themselves, and at most Options.Poll.
// Messages of the index shorten a wait, and nothing depends on them
// (LostMessagesCostNothing). An index whose clock is ahead answers too early, once per timer;
// one that is behind makes timers late by as much, and at most as late as the sweep.
//
// The hint of a timer that is due within 10 s is pushed at once. Others are collected for 100 ms, as a
// call costs the index more than a hint (HintsThatHaveTimeAreCollected), and removals are kept back for 200 ms,
// so that the hint that another instance has still to send is there before (RemovalComesAfterTheHintOfAnother).
// Between instances the index has no other order: if one moves a timer to a later moment and another one, within
// that time, to an earlier one, the hint can be the later one, and the timer waits for the sweep.
//
// # Failures and what they cost
//
//	a scheduler dies before its push     nothing, if due in more than about 2 s; else the sweep
//	the index is away                    the sweep: about 3 s, then about 1 s; pushes are dropped
//	the index is wiped                   the rebuilding, soonest first: seconds for a million
//	the index lost its last writes       nothing: the leader looks 30 s ahead
//	a consumer dies over its batch       the sweep, about 3 s
//	a consumer stalls                    the same; what it does later is refused by the rows
//	the database is away                 until it is back, plus a pause of at most 5 s
//	the lock service is away             nothing, but for what a leader repairs: then the sweep, about 6 s
//	a leader stalls                      the TTL of its lease, on top of what the sweep costs
//	a message is lost                    nothing for delays above the poll, else at most the poll
//	a handler fails                      halving, then a backoff for the one timer
//
// The sweep is every second, and takes what is more than 2 s late. It needs
// the database alone, and calls the same handler by the same path.
//
// # Who reconciles
//
// For each kind and lane, one instance that handles it leads, elected by
// Config.Leader under the key timeout:LANE:KIND. It sweeps, adopts and repairs the index. With
// [Offices] each transaction of a sweep and of an adoption begins with a look at who has the
// office in the database, and so does each round of the reconciler, whose hints go to an index
// that knows no terms: they may be put twice. A leader that has been deposed is refused,
// whatever it believes, and resigns (DeposedLeaderStops). One whose database does not answer
// resigns, too (LeaderWithoutDatabaseResigns).
//
// No timer depends on a leader. Each process claims from the index and handles what it got,
// whoever leads. While the lock service does not answer, and the database has seen no leader at
// work for some seconds, everybody who cannot be elected stands in for two of its duties: the
// sweep and the adoption, which are decided by rows that the database locks, so that two who do
// them at once have different ones (NobodyStandsInWhileSomebodyLeads). The index is repaired by
// a leader alone, and what it lacks until there is one is late by what a sweep costs. Without
// Config.Offices nobody knows of a leader that others cannot see, and the two may be done beside it.
//
// An index that is [Local] has hints of its own process alone: there each process fires what it
// scheduled, and after a restart, or the death of another, the leader's rebuilding and sweep do.
//
// # Goroutines
//
// [Queue.Run] starts all, and waits for all before it returns: the flusher of hints and the
// index; the watch over pauses and lanes; for each kind one that elects and, while it
// leads, two that sweep and reconcile, and one that prolongs what it has swept; for each shard
// one that claims; and one for each batch in work, at most
// four per kind. Only a handler that ignores its context for a second after
// Config.Drain is left behind, and Run says so.
package timeout
