// Package etcdlock implements [dlock.Locker] on etcd. Each holder and each waiter has an etcd lease and one key under
// it. A lock is granted in the order in which the keys were created.
//
// # Data
//
//	shop/locks/KEY/OWNER   the time of the request by the owner's clock, in microseconds; under its lease
//	shop/locks//OWNER      a note for an OWNER that was force-released; under its lease, too
//
// KEY is escaped as in the path of a URL, so keys with slashes have separate queues. OWNER is the id of the lease, 16
// random digits, and the number of the acquisition that uses the lease. Every acquisition has a new OWNER, so
// a late request of an earlier acquisition affects no existing key.
//
// The holder is the OWNER whose key was created first. The fencing token is 16 times the revision of that creation.
// (Earlier releases had 16 tokens per grant. Without the factor, a resource that knows those would refuse all new tokens.)
// Revisions count the changes of all of etcd and never decrease. So the tokens of a key increase, even if its queue was
// deleted.
//
// # Operations
//
// RT is one round trip, C one commit of etcd, to disk and to most of the members.
//
//	Acquire        Txn: Range of the last two of KEY, Put OWNER                       1 RT, 1 C
//	wait           Watch of the last one; Txn: Range of OWNER                         2 RT, and 0 or 1 at the end
//	fallback poll  Txn: if that is there Range of OWNER, else of the last two as well 1 RT in 0.8 to 1 s, and 3 at first
//	TryAcquire     Range of KEY; Txn: if KEY is empty Put OWNER                       2 RT, 1 C; 1 RT if it is held
//	Release        Txn: if OWNER is as it was created, delete it                      1 RT, 1 C
//	new lease      LeaseGrant before an acquisition, if the pool is empty             1 RT, 1 C
//	renewal        LeaseKeepAlive of up to 100 on a stream; Txn: Range of each OWNER  1 RT every TTL/3
//	Inspect        Range of KEY; LeaseTimeToLive                                      2 RT
//	ForceRelease   Range of KEY; Txn: if unchanged, Put the note and delete OWNER     2 RT, 1 C
//
// # Waiting
//
// A waiter watches the last key that was created before its own, so the end of a key wakes one waiter.
// Correctness does not depend on notifications: fallback polls, every 0.8 to 1 s or a quarter of a shorter TTL,
// are linearizable. The comment of notifier has the details.
//
// # Lease pool
//
// A release deletes the key and leaves its lease to the next acquisition of the same Locker, because a new lease
// takes a commit. The comment of pool has the conditions.
//
// # Lease validity
//
// A lease is renewed from before the wait. Acquire returns it with the validity of its last renewal, and only if that
// is not over. A waiter whose lease has expired or was revoked never holds the key. It gets [dlock.ErrUncertain] and
// [dlock.ErrLost], has lost its place, and rejoins at the end of the queue.
//
// A renewal counts only if the lease was renewed and the key is as it was created. A leader that was paused and
// replaced can still answer renewals for a moment after it resumes. So the read that is sent with the renewal must be
// answered in the same term. That shows that the leader was leading after the renewal was sent. Every new leader
// keeps all leases for a whole TTL from its election, so the holder's lease validity ends before its lease.
//
// One fault remains. A leader that was paused for longer than a TTL and replaced may revoke leases when it resumes,
// though the next leader has renewed them. This is etcd issue 15247: etcd 3.4.23 does it about every other time,
// later releases try not to. Then the next holder gets the key while the previous holder is being notified. The
// fencing token refuses the writes of the previous holder.
//
// Release reports a key that was deleted before.
//
// # Unknown outcomes
//
// A request without a response may have created a key. Acquire then returns [dlock.ErrUncertain] at once, and the
// lease is revoked in the background until etcd responds. The lease of a lost holder is revoked the same way. The
// client chooses the id of a lease, so it can revoke a lease even if the response to its grant was lost. A request
// that arrives after the revocation writes nothing. Close waits for these revocations. A waiter whose context ends
// leaves the queue before Acquire returns, if etcd responds within a quarter of Config.Timeout.
//
// A refusal by etcd (no space, no permission, too many requests) is not an unknown outcome: nothing was written.
//
// # Failures
//
//	a holder or waiter dies      Its key remains for the rest of the TTL, and half a second until etcd notices.
//	etcd changes its leader      All leases last another TTL.
//	a server restarts            Its data is there.
//	there is no quorum           Nothing is granted or refused. Holders are notified at the end of their lease validity.
//	a member is paused           Requests go to all members in turn, so every third one costs its Timeout, for 13 s.
//
// If etcd loses its data or is restored from an old backup, its revisions, and so its fencing tokens, are low. A
// resource that has accepted a higher token refuses them with [dlock.ErrFenced], until its token offset is raised.
//
// # Client and server
//
// [NewClient] returns a client that tests silent connections and replaces them soon. No default option of etcd has to
// be changed.
//
// The server must be etcd 3.4 or later; later releases have the issue above less often. Its shortest TTL is one and a
// half election timeouts, in whole seconds: 2 s by default. A user needs permission to read and write below the prefix,
// and can then delete the keys of holders. Only their random ids protect leases.
package etcdlock
