// Package redislock is [dlock.Locker] on Redis: standalone, behind Sentinel, or a
// Cluster. A key is given to those who wait for it in the order in which they
// asked, by the release itself: the script that ends one grant begins the next,
// and sends it to the process of the new holder. Config.Spin is the textbook lock
// instead: SET with a TTL, compare-and-delete, and polling with jitter.
//
// A [Cond] is a condition of the keys of a Locker: it moves waiters to the queue of the lock, in
// the scripts of the lock. Packages redissem (permits), redistokens (permits as tokens in lists) and redisrw
// (readers share, phase-fair) have keys and scripts of their own. All of them stand on redisx.
//
// # Data
//
//	shop:lock:{KEY}         string  OWNER:TOKEN          TTL of the lock; 3 s for a notified grant
//	shop:lock:{KEY}:fence   string  TOKEN:TIME:FORCED    24 h, or twice the TTL of the lock
//	shop:lock:{KEY}:queue   zset    OWNER by ticket      5 s after the last sign of life of any waiter
//	shop:lock:{KEY}:alive   hash    OWNER: DEAD SPAN STAMP   the same
//	shop:lock:push:PROCESS  channel OWNER TOKEN STAMP    in a Cluster shop:lock:{KEY}:push:PROCESS, sharded
//
// OWNER is PROCESS-NUMBER and new for every call of Acquire and TryAcquire.
// PROCESS is random, one per Locker. TIME is that of the server in microseconds.
// The braces are a hash tag, so that all keys share a slot. A KEY that contains a
// tag of its own shares the slot of all that have the same one: its lock is
// shop:lock:{TAG}:lock:KEY, and so on. A KEY must not be empty, or have a closing
// brace without a tag.
//
// The token is max(last+1, TIME). The last token alone would begin again at 1 on a
// server that lost its data, or repeat itself after a failover to a replica that
// lagged; the clock alone could be set back. If both happen at once a token can
// repeat or fall. That is why the fencing token has an owner too, and why a resource
// refuses what does not pass; [Locker.RaiseCounter] then puts the token above what the
// resource has accepted. No client's clock enters.
//
// # Operations
//
// Each is one script. All are O(log n) in the number of waiters, or better, and
// evict at most four dead waiters. Concurrent calls of one Locker share pipelines;
// renewals have their own.
//
//	acquire.lua  free:   EXISTS lock queue, TIME, SET fence GET, SET lock    (take.lua, which stands before it)
//	             again:  EXISTS, GET lock, PEXPIRE lock            the same owner gets the same grant
//	             waits:  EXISTS, GET lock, TIME, ZSCORE, ZRANGE, ZADD, HSET, 2 PEXPIRE, PTTL lock
//	release.lua  free:   GET lock, EXISTS queue, DEL lock                    (free.lua)
//	             waiter: 2 GET lock, 2 EXISTS queue, TIME, ZRANGE, HGET, ZREM, HDEL, GET fence, SET fence, SET lock, PUBLISH
//	renew.lua    for up to 100 locks: GET lock, PEXPIRE lock; if that is gone GET fence
//	abandon.lua  ZREM, HDEL, GET lock; if it holds the lock as release.lua
//	all.lua      for each lock GET and EXISTS queue, then as acquire.lua
//	force.lua    GET lock, GET fence, TIME, SET fence, PUBLISH, then as release.lua
//	inspect.lua  GET lock, PTTL lock, GET fence, ZCARD queue
//	raise_counter.lua   GET fence, SET fence
//
// Rounds: an uncontended Acquire and its Release cost one each. A contended one
// costs the same two commands, and half a round trip from the release to the next
// holder. A waiter adds one acquire.lua per second. A lease adds a hundredth of a
// renew.lua every TTL/3. A script that the server does not know costs a second
// round trip, once.
//
// Release and renewal compare owner and token. Renewal never inserts, so that a
// holder which comes too late cannot take the lock back.
//
// # Lease validity in a notified grant
//
// A holder considers a grant valid for nine tenths of the time for which Redis keeps it,
// counted from a moment that is certainly before the grant. For an answer that is
// when its request was sent. For a notification it cannot be when the notification arrived, which
// may be any time later. Each request of a waiter therefore carries a STAMP, the
// waiter's own clock when it sent the request; Redis keeps the last one, and the
// notification brings it back. Redis had executed that request when it granted. So the
// request was sent before the grant, whatever was lost, delayed or repeated in
// between, and even if the notification belongs to a grant that has expired: then its window
// is over too. Only the process that wrote the stamp reads it. With it Redis keeps until
// when the waiter lives without another request (DEAD), and the validity of a
// notified grant (SPAN): clients may have different TTLs, and whoever hands the lock on
// goes by those of the waiter.
//
// Requests are repeated every second, so the stamp is at most about that old, and
// a notified grant is kept for 3 s (the TTL if that is shorter): the first renewal is
// due 1 s after the stamp, and costs nothing if the lock is released before. If
// more than half of the 3 s have gone when the notification arrives, the waiter asks by
// acquire.lua, which gives it the whole TTL from then.
//
// # Nothing depends on a notification
//
// A waiter polls by itself every 0.8 to 1 s (a quarter of the TTL if that is
// shorter), and when the TTL of the holder ends, by the same acquire.lua with the
// same owner. It finds its grant, or that the lock is free, or shows that it is
// alive. Each process has one subscription connection, from its first acquisition
// until Close; in a Cluster one more per master for which it waits. When it is
// opened again, all waits look at once.
//
// # Unknown outcomes
//
// An attempt that got no answer may have taken the lock, or a place in the queue.
// Acquire then returns [dlock.ErrUncertain] at once, and one goroutine per Locker
// releases it: it runs abandon.lua for each such owner until Redis has answered,
// twice if nothing was found, because the lost attempt may still be on its way; at
// the latest it stops when the TTL has freed the key. Close waits for it. A waiter
// whose context ends leaves the queue before Acquire returns, if Redis answers
// within a quarter of Config.Timeout. A waiter whose polls fail continues for a TTL.
//
// An error that Redis itself answers, or a connection that could not be made, or
// a context that ended before the call was sent, is no such case: nothing was taken.
//
// # What a crash leaves behind
//
// A holder: the lock, until its TTL ends; then the first waiter that looks has it
// given to the head of the queue. A waiter: its place, for 2.5 s; if it is granted
// the key in that time, 3 s more. With a TTL of less than 4 s its place lasts five eighths of the TTL,
// and a grant to it the TTL at most. Either: the token, for a day. The server: after a
// restart without its data, or a failover to a replica that did not have the lock
// yet, a second holder is possible while the first finds out at its next renewal;
// the fencing token keeps the first one's late writes out. The queue forms again in the
// order of the next polls. This package does not promise more than one Redis can.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled: otherwise a silent network holds a
// pipeline for the read timeout. It needs MaxRetries -1: one that repeats a release
// whose answer was lost would report a loss that was none. [New] refuses clients
// without these, redisx.New returns one with both. A Cluster's redirects are
// followed, because a command that is redirected was not executed; commands that
// failed otherwise are marked as not to be repeated.
//
// The server needs maxmemory-policy noeviction: any other may evict a lock. The
// scripts need Redis 6.2, in a Cluster Redis 7 for sharded channels. An ACL must allow
// the channels. They run on miniredis, whose TTLs age only with ClockTTL or
// FastForward. In a Cluster a notification to a holder that was force-released goes to every
// node; all others stay on one.
package redislock
