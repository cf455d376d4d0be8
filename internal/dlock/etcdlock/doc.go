// Package etcdlock is [dlock.Locker] on etcd: every holder and every waiter has a lease
// of etcd and one key under it, and a key is given to those who wait for it in the
// order in which these were created. [RW] is a read/write lock in such a queue.
//
// # Data
//
//	shop/locks/KEY/OWNER   when OWNER asked, by its own clock, in microseconds; under its lease
//	shop/locks//OWNER      left for an OWNER that was force-released; under its lease, too
//
// KEY is escaped as in the path of a URL, so that one with slashes has a queue of its
// own. OWNER is the id of the lease, 16 digits that are random, and the number of the
// acquisition for which that lease is used: new for every acquisition, so that a request
// of a former one, which comes late, is about no key that anybody has.
//
// A lease serves one holder or waiter at a time, and may serve another one thereafter:
// see the section about leases below. The library of etcd has one lease per session: two of
// its Mutexes on one session both lock, and a session does not notice that a key of it was
// deleted.
//
// The holder is the OWNER whose key was created first. The token of a fencing token is the
// revision at which that was. Revisions count the changes of all of etcd, and never go
// back: the tokens of a key increase, also if its queue was deleted.
//
// # Operations
//
// A round is one request and its answer, and c one commit of etcd, to disk and to most
// of the members.
//
//	Acquire      Txn: Range of the last two of KEY, Put OWNER                       1 round, 1 c
//	waits        Watch of the last one; Txn: Range of OWNER                         2 rounds, and 0 or 1 at the end
//	looks        Txn: if that is there Range of OWNER, else of the last two as well 1 round in 0.8 to 1 s, and 3 at first
//	TryAcquire   Range of KEY; Txn: if KEY is empty Put OWNER                       2 rounds, 1 c; 1 if it is held
//	Release      Txn: if OWNER is as it was created, delete it                      1 round, 1 c
//	new lease    LeaseGrant before an acquisition that finds none to use again      1 round, 1 c
//	renewal      LeaseKeepAlive of up to 100 on a stream; Txn: Range of each OWNER  1 round every TTL/3
//	Inspect      Range of KEY; LeaseTimeToLive                                      2 rounds
//	ForceRelease Range of KEY; Txn: if it is the same Put word, delete OWNER        2 rounds, 1 c
//
// A queue is sorted by etcd, in O(n) for n who wait; a poll that finds all as it was is
// O(1). From the release to the next holder it is the deletion with its commit, and half
// a round for the message. The waiter polls then, unless it knows that
// nobody else was ahead; that is another round, to the memory of one member. All
// watches of a Locker are on one stream.
//
// A key that is held for more than 100 ms is watched, so that its holder hears at once
// that it was deleted, or its lease revoked, and not only at the next renewal. To watch
// from the start would cost a third of the throughput of short holds.
//
// # Whose turn it is
//
// A waiter watches the last one that came before it, so that an end wakes one waiter
// up. It is the turn of a waiter when its own key is there and none that was created
// before is. Who was ahead can only leave, so any state of etcd that shows this proves
// it, and a poll may be answered by any member from its memory. If the last one was the
// only one ahead, no poll is needed. Then one watch covers its key and the waiter's own,
// and all names between them. A member sends the events of one watch in order, so own was
// there if its end did not come first. The events of two watches may come in any order.
//
// A watch begins at the present, since etcd serves one that begins in the past only ten
// times a second (the library's Mutex waits for that), and a poll reports what happened
// before. If a commit comes while a watch is made, its present is the past already: so a
// waiter polls again 10, 30 and 70 ms after it has begun to watch, in the memory of one
// member. Nothing depends on messages: it polls by itself every 0.8 to 1 s thereafter, a
// quarter of the TTL if that is shorter, and those polls are linearizable.
//
// # Leases
//
// To grant a lease and to revoke it takes a commit each, as many as a lock without it.
// So a lease is used again: a release deletes the key, and leaves the lease to the next
// acquisition of the same Locker, as long as it was granted less than a third of its TTL
// ago. Then the lease validity of the next holder counts from that grant, and rests on no renewal.
// At most 64 wait to be used again; they are not renewed, and end by their TTL. Close
// revokes them.
//
// It is used again only if etcd has said that the key was deleted by the release, or never
// written. Whenever that is not known, and after any loss, the lease is revoked instead,
// and so no request that is on its way can leave a key under a lease that lives on.
//
// # Lease validity
//
// A lease is kept alive from before the wait. What Acquire returns is that lease, with
// the validity window of its last renewal, and only if that is open: a waiter whose lease
// has expired or was revoked never holds the key. It gets [dlock.ErrUncertain] and
// [dlock.ErrLost]. Its place is gone; who tries again is the last in the queue.
//
// A renewal counts if the lease was renewed and the key is as it was created. Members
// answer renewals from the memory of whom they take for the leader, and a leader that
// was paused, and replaced, answers for a moment after it continues. So the read that is
// sent along must have been answered in the same term: it shows that the leader was one
// after the renewal was sent. Every new leader keeps all leases for a TTL from when it
// was elected, so that the lease validity of the holder is over before.
//
// One thing no client can help: a leader that was paused for longer than a TTL, and was
// replaced, may have leases revoked when it continues, which were renewed with the next
// leader meanwhile. That is etcd issue 15247; etcd 3.4.23 does it about every other
// time, later releases try not to. The next holder is granted the key then, while the
// former one is notified as fast as it can be. Its fencing token keeps its writes out.
//
// Release reports that a key was deleted before.
//
// # Unknown outcomes
//
// An attempt that got no answer may have a place in the queue. Acquire then returns
// [dlock.ErrUncertain] at once, and the lease is revoked in the background until etcd
// answers; so is that of a holder that was lost. The id of a lease is the client's
// choice, and so it can be revoked even if the answer to its grant was lost. What
// arrives at etcd after that writes nothing: its lease is gone. Close waits for it. A
// waiter whose context ends leaves the queue before Acquire returns, if etcd answers
// within a quarter of Config.Timeout.
//
// That etcd answers with a refusal (no space, no permission, too many requests) is no
// such case: nothing was taken.
//
// # What a crash leaves behind
//
// A holder, and a waiter likewise: its key, for what is left of the TTL and the half
// second in which etcd looks for leases that have ended. After a change of its leader
// etcd keeps all leases for another TTL. A restarted server has its data; while there is no quorum
// nothing is granted or refused, and holders are notified by the end of their lease validity.
//
// A server that comes back empty, or from an old backup, counts its revisions from
// there. Fences are low then, and a resource that has accepted a higher one refuses them
// all, with [dlock.ErrFenced]: late ones of before, and those of now, which nothing in
// etcd can raise. The resource has to be notified.
//
// # Client and server
//
// [NewClient] returns a client that tries connections which are silent, and repeats them
// soon. It needs no options of etcd's own to be changed. Requests go to all members in
// turn, so that a member that is paused costs every third request its Timeout, for 13 s.
//
// The server needs etcd 3.4; a later one has the issue above less often. Its shortest TTL is one and a half election timeouts, in
// whole seconds: 2 s with the default of 1 s. Whoever may write below the prefix can
// take keys from their holders. A user needs to read and write there; leases are not
// protected by users, other than by their random ids.
package etcdlock
