// Package redisx is what the primitives on Redis have in common: clients, calls of Lua scripts in
// which concurrent callers share round trips, subscriptions that notice a lost connection, and notifications that scripts
// send to waiters.
//
// A client of go-redis repeats a command whose answer was lost, three times by default: a
// lock that was taken is then reported as held by somebody else, and a message is sent
// twice. And it waits for an answer for as long as its own timeouts let it, and not its
// caller's context. [New] returns a client that does neither, and [Check] refuses others: callers know
// what they have asked, and repeat it themselves if that is safe.
package redisx
