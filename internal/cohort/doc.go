// Package cohort lets many callers of one process share a lease and a commit (lock cohorting). The longer
// the lock takes, the more callers share it.
//
// # Model
//
// A process has a [Group], and the Group has a queue per key for the callers of [Group.Do]. The first caller of an
// empty queue starts a leader, a goroutine that lives as long as the queue. The leader repeats these steps:
//
//  1. It waits for the lease of the key, in competition with other processes.
//  2. It takes the waiting items in their order of arrival, and passes them to Config.Commit as one batch
//     with the fencing token of the lease.
//  3. It answers each caller. Items that arrived meanwhile are the next batch under the same lease.
//  4. After a bounded number of batches, or a bounded time, it releases the lease and queues for it again.
//
// No caller waits for a batch to become full. A batch contains the items that arrived during the previous commit: one
// item under low load, many under high load.
//
// # Guarantees
//
//  1. An item is committed at most once. Do returns nil only after a Commit of the item returned
//     nil (TestEveryAnswerIsTrue).
//  2. A batch is committed with the fencing token of a lease that was valid when the batch began. If the lease is
//     lost, the context of the commit ends and the batch is committed again under another
//     lease (TestALostLeaseIsReplaced). The same applies to errors that Config.Retry names, such as a
//     stale fencing token (TestAFencedBatchIsRetried).
//  3. After any other error, the batch is split until the faulty item is alone (TestABatchIsSplitForTheSakeOfOneItem).
//     It is not split if Config.Common reports that no single item is at fault (TestACommonErrorIsNotSplit). A panic of
//     Commit is an error.
//  4. A queue is served in the order of arrival. Between processes the lock service decides. If the service is
//     fair, busy processes get equally many leases (TestThreeInstancesGetEqualLeases). If it is not, the process
//     that releases a lease may get the next one.
//  5. A caller that gives up leaves the queue at once (TestACallerThatGivesUpLeavesTheQueue). If its item is in a batch, the
//     caller waits up to 250 ms for the outcome (TestALongBatchKeepsNoCaller) and returns it. The context of the
//     commit ends when all callers of the batch have given up (TestABatchOutlivesThoseWhoGiveUp).
//  6. An error of the lock service fails the callers that waited for the lease, and no
//     others (TestALockServiceThatIsAway).
//  7. Config.Refuse refuses only items that were in the queue before it was called, and no item with an
//     unknown outcome (TestRefusal).
//
// Mutual exclusion between processes is not guaranteed. A lease can expire while its holder is paused. So Commit must
// compare the fencing token in the resource. Order among processes and among keys is not guaranteed either.
//
// # Refusals
//
// When stock is exhausted, most callers are refused, and a refusal under the lease is slow. One read is enough for all
// callers that were waiting before the read was sent. Its result was true at a moment between their request and their
// response. For callers that arrive later the result may be stale, because units can be released without a lease.
//
// # Unknown outcomes
//
// If Commit fails with an unknown outcome, Config.Retry must return true. Commit must recognize items that it has
// committed before, for example by a primary key. With Config.Unknown, callers wait for this repetition even if their
// maximum wait is over (TestACallerWaitsForTheOutcomeOfItsAttempt). A caller that gives up meanwhile gets both errors: the
// end of its time and the unknown outcome.
//
// # Sources
//
// D. Dice, V. J. Marathe, N. Shavit: Lock Cohorting, PPoPP 2012. A global lock that stays within a node for a bounded
// number of owners. D. Hendler, I. Incze, N. Shavit, M. Tzafrir: Flat Combining and the Synchronization-Parallelism
// Tradeoff, SPAA 2010. A combiner executes the published operations of others. There the combiner is one of the waiting
// threads. Here the leader is a goroutine of its own, because a caller may give up at any time without an effect on the
// others.
package cohort
