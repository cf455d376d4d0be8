// Package events streams the changes in all instances to clients: orders, stock levels, leases, timers, members and the
// leader. It is by hand, because libraries of server-sent events fan out one process and keep a queue per client.
//
// # Model
//
//	in each instance
//	what happens -> Publisher -> outbox ==> Log ==> Feed of every instance -> Listener -> a client
//	                (collects)   (a queue)  (one order)  (the latest events)
//
// A [Publisher] is called after commits. It collects stock levels, leases and timers, because they change thousands of
// times a second, and puts each other event into a bounded queue. A sender appends the queue to the [Log], which all
// instances share. A [Feed] reads the log and keeps the latest events in a ring. A [Listener] is a position in that
// ring, not a queue. So a thousand listeners need no more memory than one, and a slow one delays nobody. The feed
// indexes its listeners by order, customer and SKU, so an event wakes only those that it may be for
// (TestListenersAreWokenForTheirEventsOnly).
// While orders wait for a lease, the Publisher counts them four times a second.
//
// # Guarantees
//
// Each names its tests.
//
//   - A listener receives an event at most once, in the order of the log, which is the same at all
//     instances (TestEveryInstanceReceivesEvents).
//   - A listener that may lack an event receives a notice with a [Reason] to restart,
//     after that event was published. So a client that reads the present state then is right.
//     The first notice of a new listener is one, too: listen, and then read. The reasons: the log has lost something or a
//     publisher has dropped something ([Missed]: TestMissedEventsResetAllListeners), the listener was slower than the ring
//     (Slow: TestSlowListenerIsReset), or it comes back with an ID that is not kept (Gone: TestResumeBeforeTheBufferIsAReset).
//   - A listener that comes back with its last ID, to any instance, receives everything that follows, each event once,
//     or Gone (TestResumeAtAnyInstance, TestResumeThroughLosses). This is also so at an instance that has just
//     started (TestResumeAtANewInstance).
//   - A listener with the filter of a customer receives the orders of that customer, and stock levels if it asks for them (TestFilters).
//   - Publishing does not wait for the log, or for the database that levels are read from (TestPublishingNeverWaits).
//
// # Not guaranteed
//
// Delivery. An event is published after the commit, not in it. An event is lost if its instance dies between them, or
// ends while the log is unavailable and the event waits in its queue. Nor is a loss noticed if a failover of Redis removes
// the last events of an instance that publishes no more. A commit with an unknown outcome publishes
// nothing. The order's row is the truth, and GET /api/v1/orders has it.
//
// The order of causes. Events are in the order in which instances appended them. Levels carry the version of their row; the
// highest one is the newest.
//
// Every change of a level, every lease and every timer as an event of its own.
//
// An event for each member that joins or leaves. One instance publishes them, and it may miss changes
// while it is cut off. GET /api/v1/cluster has the members.
//
// # How a loss is noticed
//
// Each entry of the log names the previous one. A feed that reads an entry, but not its previous one, has missed
// events: they were trimmed, or the log has lost its data. Then it reads the latest entries and starts again. A log
// that has become empty gets a new first entry, so that it never continues an earlier one by chance.
//
// A publisher whose queue is full drops events, and marks the next one that it appends. Every feed starts again at a
// mark. A batch that gets no answer is appended again under its number, which the log accepts once.
//
// # Failures and what they cost
//
//	a connection to the log breaks       nothing: readers continue from their IDs
//	the log is unavailable               events wait in a queue of 4,096; after that they are dropped, and all restart
//	the log loses its data               all listeners restart
//	an instance is slow to read          nothing as long as the log keeps what it has not read; after that its listeners restart
//	a listener does not read             its connection is cut, or it restarts
//	the instance of a listener dies      the listener continues at another one
//	the database is unavailable          levels are published when it is available again
//
// # Alternatives
//
// Publish/subscribe with a number per instance delivers events in a different order at each instance. Then an ID has to name a
// position for each instance, and every broken connection makes all listeners restart.
//
// # Goroutines
//
// [Feed.Run] is one, [Publisher.Run] two. A listener has none.
package events
