// Package redlock implements [dlock.Locker] on a majority of independent Redis servers (S. Sanfilippo, "Distributed
// Locks with Redis"). A key is held by the owner that has it on more than half of the servers. Use an odd number of
// servers, at least three, on machines that fail independently, each without replicas.
//
// # What it adds
//
// It adds availability while a minority of the servers is paused, cut off, slow or lost. Locks are taken, kept and
// released as fast as before, and holders do not notice. One Redis with failover to a replica does not guarantee
// that, because the replica may lack the last grants.
//
// It adds no safety over one Redis that never loses data. A holder that is paused beyond its TTL can still send its
// last write. Every server measures TTLs by a clock that can jump: if one server is in two majorities and its clock jumps
// ahead, there can be two holders. As with every lock here, the resource must check the fencing token. With fewer servers than a
// majority nothing is granted, and every call fails in time.
//
// To survive the loss of a machine safely, use a consensus store (ZooKeeper, etcd), for a flush per grant. For speed,
// use redislock on one server: two round trips instead of three, and fair.
//
// # Data
//
// On each server, independently:
//
//	shop:redlock:{KEY}        string  OWNER:TOKEN:TIME  TTL of the lock
//	shop:redlock:{KEY}:fence  string  TOKEN:FORCED      24 h, or twice the TTL of the lock
//	shop:redlock:known        string  TIME              for ever
//	shop:redlock:settling     string  SETTLE            Config.Settle, in ms
//
// OWNER is PROCESS-NUMBER-TTL and new for every attempt; TTL is in ms. TIME is that of the server in microseconds. FORCED is the owner
// that was force-released last.
//
// # Operations
//
// Each operation is one script, sent to all servers at once, with Config.Timeout per call and server, release
// included:
//
//	take.lua     EXISTS known settling, PTTL lock, TIME, GET fence, SET fence, SET lock
//	raise.lua    GET lock, GET fence, SET fence, SET lock
//	renew.lua    for up to 100 locks: GET lock, PEXPIRE lock; if that is gone GET fence
//	release.lua  GET lock, DEL lock
//	force.lua, inspect.lua, raise_counter.lua
//
// An operation returns as soon as it is decided: a majority has agreed, or so many servers have refused that no
// majority is possible. Remaining calls continue in the background. If a server grants after the attempt was decided,
// the grant is kept if the attempt succeeded and its lease is valid, and released otherwise.
//
// An uncontended Acquire costs two round trips, take and raise, and its Release one, each to the fastest majority. A
// lease adds a hundredth of a renew.lua per server every TTL/3.
//
// An attempt without a majority releases all its grants: confirmed grants before it returns, possible grants in the
// background. A waiter retries after a pause with decorrelated jitter ([backoff.Decorrelated]), or when the lease of
// the holder expires. Waiters are not served in order, and each of them retries for itself. If many callers of a
// process want the same key, decorate the Locker with package share: then one of them retries, and the others are
// served in order.
//
// Votes can be split among concurrent attempts, so that none has a majority. So TryAcquire can return [dlock.ErrHeld]
// for a free key: if another caller asks at that moment, or if a server is late after a release.
//
// # Lease validity
//
// A lease is considered valid for nine tenths of the TTL. They count from the first request of the attempt, or of a
// renewal that a majority has acknowledged. Each server counts a whole TTL from the receipt of its request, which is
// later. The tenth allows for clocks of different rates; the algorithm asks for a hundredth. Renewal never inserts: a
// server that has lost a grant does not get it back from the holder. Otherwise two holders could each win back a
// majority.
//
// # Fencing tokens
//
// The servers share no counter. Each server proposes max(last+1, TIME) when it grants. The token is the greatest
// proposal of a majority, and raise.lua stores it as the last token of a majority before the lease is returned. Any
// later majority shares a server with that one. There the later proposal was made after the token was stored, so it is
// greater, whatever the clocks show. If that server has lost its data meanwhile, its clock replaces its memory. If that
// clock is behind too, the token can decrease, and [Locker.RaiseCounter] raises it. Tokens of lost attempts are not
// used again.
//
// # Servers that lose their data
//
// A server that was restarted empty knows no grant. Its vote could create a second majority while another one is
// still valid. So a server without its key known grants nothing for Config.Settle, by default the TTL of the
// lock. By then all earlier grants have been renewed elsewhere or have expired. Meanwhile the server counts as
// held by others. The same applies to new servers: for the first TTL nothing is granted. This is the
// delayed restart that the algorithm asks of operators, and here each server enforces it.
//
// So a server must keep either nothing (no persistence, no replicas) or everything (appendfsync always). A server
// that returns with part of its data does not wait, and may lack the last second. This happens with appendfsync
// everysec and with replicas. maxmemory-policy must be noeviction.
//
// # Unknown outcomes
//
// A call without a reply may have been executed. Its grant is released by owner, per server, until that server has
// responded, twice if nothing was found, or ten TTLs have passed ([driver.Rollback]). Close waits for a TTL of that.
// Acquire and TryAcquire return [dlock.ErrUncertain] if missing replies prevented a majority. A waiter continues until
// no majority has responded for a TTL.
//
// # Clients
//
// Clients need ContextTimeoutEnabled and MaxRetries -1, as redisclient.New sets them. Otherwise a silent server delays every
// call by the read timeout, and a repeated release reports a loss that did not happen.
package redlock
