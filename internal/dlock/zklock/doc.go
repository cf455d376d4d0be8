// Package zklock implements [dlock.Locker] on ZooKeeper. It uses the session of package zookeeper, one per process.
//
// # Data
//
//	/shop/locks/KEY                 container
//	/shop/locks/KEY/ID-lease-NNN    ephemeral, sequential: a holder or a waiter
//
// ID is random, and new for every call of Acquire and TryAcquire. NNN is a number that ZooKeeper counts up; after
// 2^31 it continues with the least number, and comparisons do the same (NumbersWrapAround). KEY is escaped. The node
// with the first number holds the key. Each other node waits for the node before its own, and watches no other. Nodes
// with other names are ignored (ForeignChildrenAreTolerated).
//
// The token is the number of the transaction that created the node (czxid), which the reply to the creation contains.
// Transaction numbers grow over all keys, elections and restarts. So tokens need no stored counter, and the servers
// may delete empty containers. The owner is ID. If the servers lose their data, they count from the start, and
// resources refuse the low fencing tokens until their token offset is raised (EmptyServerStartsLowFences).
//
// # Operations
//
// Costs in round trips; c is a commit by a majority. To create a node also sets the data of the container, in the same
// step, so the version of the container counts creations.
//
//	Acquire, free     1 + c   create, and immediately after it list
//	Acquire, waiting  1       get the node before, and its own, with watches; then an event
//	TryAcquire        2 + c   list; create if the version is still the same
//	TryAcquire, held  2       list, sync and list
//	Release           1 + c   set data and delete, in one step
//	hand-off          1 + c   from Release in one process to the grant in another
//	hand-off          0       in the same process
//	renewal           1 + c   every 0.2 S: a commit that changes nothing, and get each node
//
// If this process was the last and only user of a key, Acquire creates its node without a list. The creation has the
// condition that no other node was created since (uncontended.go). A failed TryAcquire never creates a node, so it
// makes no other caller fail.
//
// A waiter polls every second (or a sixth of S, if that is shorter), by one empty commit per process and one get. It
// fails when no server has responded for S.
//
// # Hand-off
//
// The holder sets the data of its node and deletes the node, in one step. The watch of the next waiter reports the
// first of the two. So "changed" means that a holder has released, and the next waiter holds the key without another
// request. "Deleted" means that a waiter gave up, or a process died, or a holder was force-released. Then the next
// waiter lists, unless that node was the only one ahead (LeavingWaiterGrantsNothing). So only its owner may write to
// a node; to delete a node is to force-release its owner.
//
// A contended lock costs five requests (creation, list, two watches, release) and two events; a queue without this
// proof costs three and one. The difference is processor time and not round trips. One of the watches is that of a
// waiter on its own node. Without it, a waiter whose node was deleted would take the key together with the next waiter,
// or need another round trip in every hand-off.
//
// A waiter of the same process is notified before the deletion is sent (HandOffWithinAProcess). Its node is next and
// lives as long as that of the holder, so no other process can get the key in between.
//
// # Lease validity
//
// S is the session timeout that the servers have chosen (ShorterSessionHasAShorterValidity). A lease is valid for
// nine tenths of three fifths of S, counted from the sending of a request that a majority has accepted. That ends
// before the leader can expire the session (see package zookeeper). So a holder that is cut off stops before its node
// is deleted. It learns of the expired session only after the network recovers (HolderIsNotifiedOfThePartition). A
// shorter disconnection has no effect. If the servers have raised the session to their minimum of 2 ticks, the
// validity is nine tenths of two fifths of S (RaisedSessionHasAShorterValidity).
//
// If a lease is lost while its session lives, its node is deleted, because it would block the key for ever. A holder
// whose node was deleted is notified by its next renewal, and after the first renewal at once, with the reason
// Forced.
//
// # Unknown outcomes
//
// A creation without a reply returns [dlock.ErrUncertain]. Its node, if it exists, is deleted in the background until
// that is confirmed (LostReplyLeavesNoNode). A waiter whose context ends deletes its node before Acquire returns, if
// the servers respond within a tenth of S, and in the background otherwise. A remaining watch ends with its node
// (WaitersLeaveNoWatch). If the session expires, or the node of a waiter is deleted, the waiter rejoins at the end of
// the queue.
//
// # Failures
//
// The node of a dead holder or waiter remains for S and up to a tick after its last request. If all servers
// restart, nothing is lost, and sessions last a whole S from the next election.
//
// # Servers
//
// ZooKeeper 3.5.3 or later, for containers. S must be at least 4 ticks, or the minimum to which the servers raise it.
// The limits of the servers (2 to 20 ticks by default) must be equal on all of them, and the minimum at least 2
// ticks. The session must be configured with every server of the ensemble. The nodes are open to every client that
// can reach the servers.
package zklock
