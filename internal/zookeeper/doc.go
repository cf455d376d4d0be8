// Package zookeeper is a process's session with ZooKeeper: one connection, kept up,
// that says what state it is in, and requests that end with their contexts. It has
// no recipes; locks, elections and memberships are built on it elsewhere.
//
// It is made of github.com/go-zookeeper/zk, whose connection knows no contexts, waits
// as it likes, and leaves to its users what becomes of a request that was not
// answered. What is added here:
//
//   - A request ends when its context does, and after two thirds of the timeout of the
//     session in any case (RequestsEnd). ErrUnavailable says that it was not sent, and
//     ErrUncertain that it may have been executed.
//   - [Session.CreateProtected] leaves no orphan: what an unanswered creation may have
//     made is found by a random ID and deleted in the background, for as long as it
//     takes (LostReplyLeavesNoOrphan, LateCreationIsUndone). [Session.DeleteLater]
//     does the same for what has a path (DeleteLater).
//   - States are told as they come: [Disconnected] at once, [Expired] when a server has
//     said so, which it can only when it is reached again (ExpiryIsHeardWhenConnectedAgain).
//   - A session that nobody has heard of for twice its timeout is given up, with its
//     connection: a server that has lost its data would refuse that for ever, because
//     it has seen more than the server (EmptyServerIsAccepted).
//   - A node is watched once by a session, however many ask, and a watch that was
//     stopped calls nobody (StoppedWatchesDoNotPileUp). Watches outlive connections
//     (WatchesOutliveConnections), and are told when the session ends.
//   - The next server is tried at once when one is lost, and soon when it says nothing
//     (SilentServerIsPassedOver); rounds of all servers are paced from 10 ms to 1 s.
//   - With [Config].Auth the nodes belong to one user, who is named to a server before anything else
//     (NodesBelongToTheUser). Nodes that exist already keep their ACL.
//   - Nodes are below a root of the application. Parents are made on demand, as
//     containers, which the servers delete some time after the last child has gone.
//
// # How far a session can be trusted
//
// The servers end a session when its leader has not heard of it for its timeout S,
// rounded up to a tick. An answer alone proves little: a follower that is cut off
// from its leader goes on answering reads for a while, when the leader may have ended
// the session already. So does a leader that is cut off from the others: it answers a
// Sync, when there may be another leader. A write is accepted by a majority.
// [Session.Confirmed] is when the last one was sent that was, and [Session.Confirm] is a
// write that changes nothing (OnlyAMajorityConfirms).
//
// The leader hears of a session from the follower that has it: twice per tick, and
// what it hears may be as old as the last request or ping, of which there is one per
// S/3. So the session lasts for S - S/3 - half a tick at least, from when a confirmed
// request was sent. Who relies on a session stops before that: a lock after 0.54 S,
// which is right if S is 4 ticks at least. The servers allow sessions of 2 to 20 ticks
// unless told otherwise; Timeout says what they have chosen. If they raise a session to the least
// that they allow ([Session.Raised]), S is 2 ticks, and a lock stops after 0.36 S.
//
// No clocks are compared. A process that is stopped cannot stop relying on its
// session in time: that is what fences are for.
//
// # Order
//
// Requests of one session that are sent one after the other are executed in that
// order. Of two goroutines that send at the same time either may be first.
//
// # Goroutines
//
// A session has those of its zk connection, three, and one per request in flight. One
// more deletes what nobody wants while there is any. [Session.Close] waits for all.
package zookeeper
