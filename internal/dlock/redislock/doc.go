// Package redislock implements [dlock.Locker] on Redis: standalone, behind Sentinel, or a Cluster. Callers are
// served in their order of arrival. The script that ends a grant begins the next one, and notifies the Locker of the
// new holder.
//
// A [Cond] is a condition of the keys of a Locker. Packages redissem (permits), redistokens (permits as tokens in
// lists) and redisrw (permits as a read/write lock) have keys of their own.
//
// # Data
//
//	shop:lock:{KEY}         string  OWNER:TOKEN          TTL of the lock; 3 s for a notified grant
//	shop:lock:{KEY}:fence   string  TOKEN:TIME:FORCED    24 h, or twice the TTL of the lock
//	shop:lock:{KEY}:queue   zset    OWNER by ticket      5 s after the last request of any waiter
//	shop:lock:{KEY}:alive   hash    OWNER: DEAD SPAN STAMP   the same
//	shop:lock:push:PROCESS  channel OWNER TOKEN STAMP    one per Locker
//
// OWNER is PROCESS-NUMBER-TTL, new for every acquisition. PROCESS is random, one per Locker; TTL is in ms. TIME is that of the server in
// microseconds. The braces are a hash tag, so all keys of a lock share a slot. A KEY that contains a tag has the slot
// of this tag.
//
// The token is max(last+1, TIME). The last token alone would start again after a loss of data. The clock alone could
// be set back. If both happen at once, a token can repeat or decrease. Then the resource refuses it, by the owner if
// it is equal, until [Locker.RaiseCounter] raises it. No clock of a client is used.
//
// # Cost
//
// Each operation is one script (scripts.go), O(log n) in the number of waiters, or better. A lone call is
// sent by its caller, and concurrent calls of one Locker share pipelines; renewals have their own. An uncontended
// Acquire and its Release cost one round trip each. A contended grant costs the same two commands, and half a round
// trip from the release to the next holder. A waiter adds one acquire.lua per second. If many callers of a process want
// the same key, package share lets them take turns under one grant, and a turn costs no request
// (docs/benchmarks/locks.md). A lease adds a hundredth of a renew.lua every TTL/3.
//
// Release and renewal compare owner and token. Renewal never inserts, so a late holder cannot take the lock back.
//
// # Lease validity of a notified grant
//
// A holder considers a grant valid for nine tenths of its TTL in Redis, counted from a moment before the grant. For a
// reply, that moment is the sending of the request. A notification may arrive at any time after the grant. So each
// request of a waiter carries a STAMP, the waiter's clock at the sending. Redis stores the last STAMP, and the
// notification contains it. Redis had executed that request when it granted the lock, so the STAMP is from before the
// grant, whatever was lost, delayed or repeated. Clients may have different TTLs. So Redis also stores how long the
// waiter counts as alive without another request (DEAD), and the validity of a notified grant (SPAN).
//
// # Lost notifications
//
// Correctness and progress do not depend on notifications. A waiter polls every 0.8 to 1 s (a quarter of a shorter
// TTL), and when the TTL of the holder ends. A poll is the same acquire.lua with the same owner. It finds a grant or
// a free lock, or shows that the waiter is alive. Each Locker has one subscription connection. When it is opened again,
// all waiters poll at once. In a Cluster every node passes each notification on. That is a message per contended grant and
// node, and no waiter has to follow the slots of its keys.
//
// # Unknown outcomes
//
// An attempt without a reply may have taken the lock, or a place in the queue. Acquire then returns
// [dlock.ErrUncertain] at once. In the background abandon.lua releases such owners until Redis has responded. If that
// found nothing, it runs once more, because the lost attempt may still be in flight. Close waits for it. When a
// waiter gives up, its place is gone before Acquire returns, if Redis responds within a quarter of
// Config.Timeout. If all polls of a waiter fail, it continues for a TTL.
//
// After an error reply, without a connection, and with a context that ended before the call was sent, nothing was
// taken.
//
// # Failures
//
//	a holder dies          The lock remains until its TTL ends. The first poll then grants it to the head of the queue.
//	a waiter dies          Its place remains for 2.5 s, or five eighths of a shorter TTL than 4 s. A grant to it lasts 3 s
//	                       more, or the TTL.
//	Redis' clock is set    The lock of a holder that has died remains for its TTL after the next request for it. Waiters
//	back                   that a grant overtakes before their next poll lose their place.
//	Redis loses its data,  A second holder is possible until the first is notified by its next renewal. The fencing token
//	or fails over to a     refuses the first holder's late writes. The queue forms again in the order of the next polls.
//	replica that lagged
//
// # Client and server
//
// The client needs ContextTimeoutEnabled: otherwise a silent network blocks a pipeline for the read timeout. It needs
// MaxRetries -1: a client that repeats a release whose reply was lost reports a loss that did not happen. Clients
// without these options are refused by [New]; redisclient.New sets both.
//
// The server needs maxmemory-policy noeviction: any other policy may evict a lock. The scripts need Redis 6.2. An ACL
// must allow the channels. The scripts run on miniredis, whose TTLs age only with ClockTTL or FastForward.
package redislock
