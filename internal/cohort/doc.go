// Package cohort serves many callers under one lease. It turns the usual argument against a
// distributed lock around: the longer the lock takes, the more callers share it.
//
// # The model
//
// A process has a [Group], and for each key a line of those who called [Group.Do]. Whoever finds
// no line begins one, and with it a leader, a goroutine that lives as long as the line. The
// leader waits for the lease of the key, as one process among several; takes those who wait in
// the order of their arrival; hands them to Config.Commit in one batch, with the fence of the
// lease; and gives each its answer. What has come meanwhile is the next batch under the same
// lease: leadership passes on within the process, which costs no message. After a bounded number
// of batches, or milliseconds, the leader releases the lease and asks for it again, behind those
// who wait elsewhere.
//
// Nobody waits for a batch to become full. A batch is what has gathered while the one before it
// was being committed, so that it is one item when little happens, and large exactly when that
// pays.
//
// # Guarantees
//
//  1. An item is committed at most once, and Do returns nil only after a Commit of it that
//     returned nil (TestEveryAnswerIsTrue).
//  2. A batch is committed under a lease that was held when it began, with the fence of that
//     lease. Should the lease be lost, the context of the work ends, and the batch is
//     committed again under another lease (TestALostLeaseIsReplaced), as it is after an error
//     that Config.Retry names, a refused fence above all (TestAFencedBatchIsRetried).
//  3. A batch that fails for another reason is split until the one who is to blame is alone
//     (TestABatchIsSplitForTheSakeOfOneItem), unless Config.Common says that the fault is
//     nobody's in particular (TestACommonErrorIsNotSplit). A panic of Commit counts as an error.
//  4. First come, first served within a line. Between processes the lock service decides; with
//     one that is first come, first served, all that have enough to do get equally many leases
//     (TestThreeInstancesHaveTheirTurns). With one that is not, whoever releases a lease may be the
//     one who gets it next.
//  5. Whoever gives up leaves the line at once (TestWhoGivesUpLeavesTheLine). A caller whose item is in
//     a batch waits 250 ms for it (TestALongBatchKeepsNoCaller), and is told that it was done if it was; the work
//     is told to stop when all who are in the batch have given up (TestABatchOutlivesThoseWhoGiveUp).
//  6. An error of the lock service is the answer to those who waited for it, and to nobody
//     else (TestALockServiceThatIsAway).
//  7. A look by Config.Refuse answers only those who were in the line before it began, and
//     nobody whose fate an earlier attempt has left open (TestRefusal).
//
// What is not guaranteed: that no two processes commit at once. A lease can end while its holder
// is paused, between any two instructions; whatever Commit changes has to compare the fence.
// Neither is there any order among callers of different processes, or among keys.
//
// # Refusals
//
// When something has run out, most callers are to be told so, and telling them under a lease
// would be the slowest way to do nothing. One read is enough for all who came before it was
// sent: each of them can be answered with what was true at a moment between the question and the
// answer, which is all that anybody can promise. Not so for a caller who comes after
// the read was sent, for whom it is old news, as a message is that says so, or the knowledge of
// whoever holds the lease: other changes need no lease.
//
// # Errors that leave a question open
//
// If Commit fails and nobody knows whether it took effect, Config.Retry should say yes, and Commit
// recognise what it has done before, for example by a primary key. With Config.Unknown even those
// wait for that who would not have waited for a lease any longer
// (TestTheImpatientHearWhatBecameOfThem). Whoever gives up in the
// meantime is told both, that the time was up and what the last attempt left open.
//
// # Sources
//
// D. Dice, V. J. Marathe, N. Shavit: Lock Cohorting, PPoPP 2012, has the two levels: a lock among
// nodes that stays within a node for a bounded number of owners. D. Hendler, I. Incze,
// N. Shavit, M. Tzafrir: Flat Combining and the Synchronization-Parallelism Tradeoff, SPAA 2010,
// has the combiner, who carries out what others have published. There the leader is one of the
// waiting threads; here it is a goroutine of its own, since a caller may give up at any time, and
// its deadline should be nobody else's.
package cohort
