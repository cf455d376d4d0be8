// Package redlock is [dlock.Locker] on a majority of Redis servers that know nothing of
// one another (S. Sanfilippo, "Distributed Locks with Redis"). A key is held by whoever
// has it on more than half of the servers. They are to be an odd number, at least three,
// on machines that fail one by one, each without replicas.
//
// # What it adds, and what it does not
//
// It adds availability: while a minority of the servers is paused, cut off, slow or
// lost, locks are taken, kept and released as fast as before, and who holds one does
// not notice. One Redis with a replica that takes over does not promise that much, as it
// may forget the last grants.
//
// It adds no safety over one Redis that never loses data. A holder that is paused
// beyond its TTL still sends its last write, and every server still measures TTLs by a
// clock that can jump: if the clocks of a majority run ahead, two holders can be in at
// once. As with every lock here, what keeps a late write out is the fencing token, and the
// resource must check it. With fewer than a majority nothing is granted, and every call
// says so in time. If what is needed is not to lose the lock with one machine, a
// consensus store (ZooKeeper, etcd) promises more, for a flush per grant; if what is
// needed is speed, redislock on one server needs two rounds for what takes three here, and is fair.
//
// # Data
//
// On each server, independently:
//
//	shop:redlock:{KEY}        string  OWNER:TOKEN:TIME  TTL of the lock
//	shop:redlock:{KEY}:fence  string  TOKEN:FORCED      24 h, or twice the TTL of the lock
//	shop:redlock:known        string  TIME              for ever
//	shop:redlock:settling     string  TIME              Config.Settle
//
// OWNER is PROCESS-NUMBER and new for every attempt. TIME is that of the server in
// microseconds. FORCED is the owner that was force-released last.
//
// # Operations
//
// Each is one script, sent to all servers at once, with Config.Timeout for each call
// and each server, release included:
//
//	take.lua     EXISTS known settling, PTTL lock, TIME, GET fence, SET fence, SET lock
//	raise.lua    GET lock, GET fence, SET fence, SET lock
//	renew.lua    for up to 100 locks: GET lock, PEXPIRE lock; if that is gone GET fence
//	release.lua  GET lock, DEL lock
//	force.lua, inspect.lua, raise_counter.lua
//
// Every operation returns with the answer that decides it: when a majority says yes, or
// so many say no that none can. What is still under way continues in the background. A
// server that grants when its attempt has been decided adds to the grant, if the attempt
// was won and its lease is not over, or else gets its own back.
//
// Rounds: an uncontended Acquire costs two, take and raise, and its Release one, each to
// the fastest majority. A lease adds a hundredth of a renew.lua per server every TTL/3.
//
// All or nothing: an attempt without a majority releases all that it got, before it
// returns as far as servers have granted, in the background as far as they may have.
// Who waits tries again after a pause with decorrelated jitter ([backoff.Decorrelated]), or
// when the lease of the holder ends. Of those who acquire a key in one process one tries,
// the others wait for their turn, and hear of an outage from it ([driver.LocalQueue]). Among
// processes keys are not granted in order; one with many callers is the likeliest to have
// a key again.
//
// Votes can be split: of attempts at the same time each may get a part, and none a
// majority. So TryAcquire can return [dlock.ErrHeld] for a key that nobody holds, if
// somebody else asks for it at that moment, or has released it and a server is late.
//
// # Validity
//
// A lease is considered valid for nine tenths of the TTL from when the first request of the attempt
// was sent, and so on from each renewal that a majority has acknowledged. Each server
// counts a whole TTL from when it received its request, which is later. The tenth is for
// clocks that run at different rates, and more than the hundredth that the algorithm asks
// for. Renewal never inserts: a server that has lost a grant does not get it back from
// its holder, or two holders could win one by one what they had lost.
//
// # The fencing token
//
// There is no counter that all share. Each server proposes max(last+1, TIME) when it
// grants; the token is the greatest proposal of a majority; and raise.lua makes it the
// last token of a majority before the lease is returned. Any later majority has a
// server in common with that one, on which the later proposal was made after the lock
// was free again, hence after the token was raised there: so it is greater, and so is the
// later token, whatever the clocks say. If that server has lost its data meanwhile, its
// clock takes the place of its memory; if that is behind too, the token can fall, and
// [Locker.RaiseCounter] raises it. Tokens that lost attempts use up are never used again.
//
// # Servers that lose their data
//
// A server that was restarted empty knows no grant, and its vote could make a second
// majority alongside one that is still considered valid. So a server that does not know that it
// has been used, for want of its key known, grants nothing for Config.Settle, by default
// the TTL of the lock: by then all grants of before have been renewed elsewhere, or have
// ended. It counts as one that somebody else has. The same holds when servers are first
// used: the first TTL passes without a grant. That is the delayed restart which the
// algorithm asks of operators; here each server sees to it, and nobody has to wait before
// starting one.
//
// So a server should either keep nothing (no persistence, no replicas), or everything
// (appendfsync always). One that comes back with some of its data, as with appendfsync
// everysec or from a replica, does not settle and may have forgotten the last second.
// maxmemory-policy must be noeviction.
//
// # Unknown outcomes
//
// A call without an answer may have been executed. What it may have taken is released
// by owner, per server, until that server has answered, twice if nothing was found, or
// the TTL has passed ([driver.Rollback]); Close waits for it. Acquire and TryAcquire return
// [dlock.ErrUncertain] if that kept them from a majority. A waiter continues until no
// majority has answered for a TTL.
//
// A server that has not answered for eight calls gets no other one before it does, and
// one whose last call timed out gets one at a time; what waits for that counts as not
// sent. So a paused server costs a few connections, and no goroutine beyond the attempts
// that it was asked for, and votes again as soon as it can.
//
// # Clients
//
// They need ContextTimeoutEnabled, and MaxRetries -1; redisx.New makes such.
// Otherwise one silent server holds up every call for the read timeout, and a release
// that is repeated reports a loss that was none.
package redlock
