// Package zklock is [dlock.Locker] and [dlock.RWLocker] on ZooKeeper, over a session of
// package zookeeper, which a process has one of.
//
// # Data
//
//	/shop/locks/KEY                 container
//	/shop/locks/KEY/ID-lease-NNN    ephemeral, sequential: a holder or a waiter
//
// ID is random, and new for every call of Acquire and TryAcquire. NNN is a number that
// ZooKeeper counts up; after 2^31 it continues with the least one, and so do comparisons
// here (NumbersWrapAround). KEY is escaped. The node with the first number holds the
// key; each other one waits for the node before its own, and watches no other. Nodes
// whose names are of another form do not count (ForeignChildrenAreTolerated). For [RW]
// see there.
//
// The token is the number of the transaction that created the node (czxid), which the
// answer to the creation has. Numbers of transactions grow over all keys, elections
// and restarts, so tokens need nothing to be kept, and the servers delete containers
// that are empty. The owner is ID. Servers that lose their data begin again: then
// fencing tokens are low, and a resource refuses them until it is notified (EmptyServerStartsLowFences).
//
// # Operations
//
// In rounds, c being a commit by a majority. Creating a node also sets the data of the
// container, in one step, so that the version of the container counts creations.
//
//	Acquire, free     1 + c   create, and right after it list
//	Acquire, waiting  1       get the node before, and its own, with watches; then an event
//	TryAcquire        2 + c   list; create if the version is still the same
//	TryAcquire, held  2       list, sync and list
//	Release           1 + c   set data and delete, in one step
//	hand-off          1 + c   from Release in one process to the grant in another
//	hand-off          0       in the same process
//	renewal           1 + c   every 0.2 S: a commit that changes nothing, and get each node
//
// Where this process has had a key last, alone, Acquire creates with the condition
// that nobody has come since, and does not list (uncontended.go). A TryAcquire that fails has
// never created a node, so that nobody is refused because of one.
//
// Who waits polls by itself every second (a sixth of S if that is shorter), by one
// empty commit per process and one get. It gives up with an error when no server has answered
// for S.
//
// # Hand-off
//
// The holder sets the data of its node and deletes it, in one step. The watch of the
// next one reports the first of the two, so that "changed" means that a holder has
// left, and the next one is the first without looking. "Deleted" means that somebody
// gave up, or died, or was force-released: then the next one lists, unless that was the
// only one ahead (LeavingWaiterGrantsNothing). So nobody but its owner may write to a node;
// to delete one is to force its owner out.
//
// So a lock that somebody waits for takes five requests (creation, list, two watches,
// release) and sends two messages, where a queue without proof would take three and one:
// that is what it costs beyond its two commits, in processor time and not in rounds. The
// watch of a waiter on its own node is one of them. Without it a waiter whose node was
// deleted would take the key alongside the one behind it, or ask for its node between a
// release and the grant: a round more in every hand-off, for a request less.
//
// A waiter of the same process is notified before the deletion is even sent
// (HandOffWithinAProcess): its node is next and lives as long as that of the holder, so
// nobody else can be granted the key in between.
//
// # Lease validity
//
// A lease has a validity window of nine tenths of three fifths of S, the timeout of the
// session as the servers have chosen it (ShorterSessionHasAShorterValidity), from when a
// request was sent that a majority has accepted: that is over
// before the leader can end the session, by the reasoning in package zookeeper. So a
// holder that is cut off stops before its node is deleted, while the end of the session
// is news only after the network recovers (HolderIsNotifiedOfThePartition). A disconnection that
// is shorter costs nothing. If the servers have raised the session to the shortest that they allow, which is
// 2 ticks, the window is nine tenths of two fifths of S (RaisedSessionHasAShorterValidity).
//
// A lease that is lost while its session lives has its node deleted, or it would be in
// the way for ever. A holder whose node was deleted hears it at its next renewal, and
// after the first one at once; the reason is Forced.
//
// # Unknown outcomes
//
// A creation that is not answered is [dlock.ErrUncertain]; the node, if there is one,
// is deleted in the background, until that is certain (LostReplyLeavesNoNode). A waiter
// whose context ends deletes its node before Acquire returns, if the servers answer in
// a tenth of S, and in the background otherwise. A watch that is left behind ends with
// the node that it is on (WaitersLeaveNoWatch). If the session ends, or somebody deletes
// the node of a waiter, the waiter takes a new place, at the end.
//
// # What a crash leaves behind
//
// A holder or a waiter: its node, until S and up to a tick have passed since it was
// heard of. The servers, all of them: nothing is lost, and sessions have a whole S
// again when there is a leader.
//
// # Servers
//
// ZooKeeper 3.5.3 or later, for containers. S must be 4 ticks at least, or what the servers
// raise it to. Their limits (2 to 20 ticks unless set otherwise) are the same on all
// of them, and the lower one is 2 ticks at least. Every server of the ensemble belongs in the configuration of the session. The
// nodes are open to whoever reaches the servers.
package zklock
