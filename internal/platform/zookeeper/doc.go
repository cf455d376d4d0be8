// Package zookeeper is a session with ZooKeeper for one process: a connection that is kept open, reports its state,
// and ends requests with their contexts. It has no recipes. Locks, elections and memberships are built on it in
// other packages.
//
// The package uses github.com/go-zookeeper/zk. That library's connection ignores contexts, waits without a bound,
// and does not report the outcome of an unanswered request. This package adds:
//
//   - A request ends with its context, and in any case after two thirds of the session's timeout (RequestsEnd).
//     ErrUnavailable means that the request was not sent, ErrUncertain that it may have been executed.
//   - [Session.CreateProtected] leaves no orphan. If a creation was not answered, a random ID finds its node. It is
//     deleted in the background, for as long as it takes (LostReplyLeavesNoOrphan, LateCreationIsUndone).
//     [Session.DeleteLater] does the same for a path (DeleteLater).
//   - States are reported as they change: [Disconnected] at once, [Expired] when a server reports it, which needs a
//     connection (ExpiryIsReportedWhenConnectedAgain).
//   - A session without an answer for twice its timeout is given up, with its connection. Otherwise a server that
//     has lost its data would refuse the session forever, because the session has seen more than the server
//     (EmptyServerIsAccepted).
//   - A session watches a node once, however many callers ask, and a stopped watch calls no function
//     (StoppedWatchesDoNotPileUp). Watches outlive connections (WatchesOutliveConnections), and are notified when
//     the session ends.
//   - If a server is lost, the next one is tried at once, and soon if a server is silent
//     (SilentServerIsPassedOver). Attempts at all servers are paced from 10 ms to 1 s.
//   - With [Config].Auth the nodes belong to one user, who is authenticated before any other request
//     (NodesBelongToTheUser). Existing nodes keep their ACL.
//   - Nodes are below a root of the application. Parents are created on demand, as containers, which the servers
//     delete some time after the last child is gone.
//
// # Session validity
//
// The servers end a session if its leader receives nothing for the timeout S, rounded up to a tick. One response
// proves little. A follower that is cut off from its leader answers reads for a while, though the leader may have
// ended the session already. A leader that is cut off from the others answers a Sync, though there may be another
// leader. A write is accepted by a majority. [Session.Confirmed] is the time at which the last accepted write was
// sent, and [Session.Confirm] is a write that changes nothing (OnlyAMajorityConfirms).
//
// The follower of a session reports it to the leader twice per tick. The report may be as old as the last request
// or ping, and a ping is sent every S/3. So the session lasts for at least S - S/3 - half a tick from the sending
// of a confirmed request. A user of the session stops earlier: a lock after 0.54 S, which is correct if S is at
// least 4 ticks. By default the servers allow sessions of 2 to 20 ticks; Timeout returns the one that they chose.
// If they raise a session to the least that they allow ([Session.Raised]), S is 2 ticks, and a lock stops after
// 0.36 S.
//
// No clocks are compared. A paused process cannot stop using its session in time, so resources need fencing tokens.
//
// # Order
//
// The servers execute requests of one session in the order in which they were sent. If two goroutines send at the
// same time, either request may be first.
//
// # Goroutines
//
// A session has the three goroutines of its zk connection, and one per request in flight. One more deletes orphaned
// nodes while there are any. [Session.Close] waits for all of them.
package zookeeper
