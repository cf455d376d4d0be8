// Package redislock is [dlock.Locker] on one Redis, standalone or behind a
// failover: the textbook lock (SET with a TTL, compare-and-delete), with a fence
// and with every attempt made repeatable. It waits by polling with jitter.
//
// # Data
//
//	shop:lock:{KEY}         string  OWNER:FENCE   TTL of the lock
//	shop:lock:{KEY}:fence   string  last token    24 h, or twice the TTL of the lock
//
// OWNER is random and new for every call of Acquire and TryAcquire. The braces
// are a hash tag, so that both keys share a slot; a KEY must therefore not be
// empty or begin with a closing brace.
//
// The token is max(last+1, TIME in microseconds) by the clock of the server. The
// last token alone would begin again at 1 on a server that lost its data, or
// repeat itself after a failover to a replica that lagged; the clock alone could
// be set back. If both happen at once a token can repeat or fall. That is why the
// fence has an owner too, and why a resource refuses what does not pass. No
// client's clock enters.
//
// # Operations
//
// Each is one script and one round trip (a second one when the server does not
// know the script), and O(1).
//
//	acquire.lua   GET lock; TIME, GET fence, SET fence PX, SET lock PX   (again, by the same owner: PEXPIRE lock)
//	renew.lua     GET lock; PEXPIRE if it holds this OWNER:FENCE         every TTL/3
//	release.lua   GET lock; DEL if it holds this OWNER:FENCE
//	abandon.lua   GET lock; DEL if OWNER has it
//
// Renewal and release compare owner and fence; renewal never inserts, so that a
// holder which comes too late cannot take the lock back. A waiter costs one
// acquire.lua per 1 to 50 ms (Config.Retry).
//
// # Unknown outcomes
//
// An attempt that got no answer may have taken the lock. Acquire then returns
// [dlock.ErrUncertain] at once, and one goroutine per Locker gives the lock back:
// it runs abandon.lua for each such owner until Redis has answered, twice if the
// lock was not found, because the lost attempt may still be on its way; at the
// latest it stops when the TTL has freed the key. Close waits for it.
//
// An error that Redis itself answers, or a connection that could not be made, is
// no such case: nothing was taken.
//
// # What a crash leaves behind
//
// A holder: the lock, until its TTL ends; then the next attempt takes it. A
// waiter: nothing. Either: the token, for a day. The server: after a restart
// without its data, or a failover to a replica that did not have the lock yet, a
// second holder is possible while the first finds out at its next renewal; the
// fence keeps the first one's late writes out. This package does not promise more
// than one Redis can.
//
// # Client and server
//
// The client needs MaxRetries -1: one that repeats a release whose answer was
// lost reports a loss that was none. It needs ContextTimeoutEnabled: otherwise a
// silent network holds a call for the read timeout, whatever its context says.
// [New] refuses clients without these, [NewClient] returns one with both. A
// ClusterClient repeats commands on its own account (MaxRedirects); there a
// release can be reported as lost.
//
// Cancelling a context without a deadline is noticed only between two attempts,
// because the client does not interrupt a read: within Config.Timeout.
//
// The server needs maxmemory-policy noeviction: any other may evict a lock. The
// scripts need Redis 5 or newer and run on miniredis, whose TTLs age only with
// ClockTTL or FastForward.
package redislock
