// Package redisindex is [timeout.Index] on Redis: standalone, behind Sentinel, or a Cluster.
//
// # Data
//
// The timers of a kind and lane are spread over Config.Shards shards by their id.
// One shard is four keys with one hash tag, in one slot of a Cluster:
//
//	shop:timeout:{KIND:LANE:N}:pending   zset    ID by due time in ms
//	shop:timeout:{KIND:LANE:N}:leased    zset    TOKEN|ATTEMPT|DUE|ID by end of the lease in ms
//	shop:timeout:{KIND:LANE:N}:fence     string  the last TOKEN
//	shop:timeout:{KIND:LANE:N}:complete  string  number of shards, once the index has been told everything
//	shop:timeout:wake                    channel KIND:LANE:N DUE; in a Cluster shop:timeout:{KIND:LANE:N}:wake, sharded
//
// N counts from 0. In a Cluster it is a number whose slot is in the Nth part of all
// slots, so that shards spread over masters that share the slots evenly. Give it
// a multiple of the number of masters. All processes must have the same number: a shard
// whose complete has another one reports that it was wiped, and is rebuilt.
//
// There is no payload, no expiry, and nothing but these keys, all of which can be
// deleted at any time. A pending timer with an id of 36 characters costs about 140 bytes.
//
// # Claims
//
// A claim moves ids from pending to leased, by the server's clock, in one script,
// and nothing else decides about it. A lease that has ended is found by the
// next claim in the same set, and lent again in the same step: there is no
// state between lost and lent in which a crash could leave a timer. What is lent
// again counts one attempt more. An id that is pending as well as in a lease that
// has ended is lent once.
//
// The token is part of the member, so that Ack, Return and Extend of a consumer
// whose lease was lent again find nothing. The token is max(last+1, the
// server's time in microseconds): it grows also when the server has lost its data,
// or a replica that lagged took over. If its clock is set back at the same time it may
// repeat, and an Ack may then end the lease of another consumer; the rows of the store, and the overdue
// sweep, are what such a timer falls back on.
//
// # Two hints for one timer
//
// With missing, Schedule leaves alone what is pending. It does not look for what is
// leased: leases are found by token, and a second set of leases by id would cost
// every claim and every ack twice, to save a claim that finds its row done. So a timer
// that is lent and scheduled again is pending as well, and Return leaves it so. A
// hint too many is a claim that ends without effect; one too few would be a timer that is late.
//
// # Round trips
//
// Concurrent calls of Schedule share scripts: while one is on its way to a shard
// the hints for the next collect, at most 512, and each caller gets the outcome
// of the script that had its hints. Nobody waits for company. Every script costs
// O(n log m) for the n timers it touches, at most 512, out of m.
//
//	schedule.lua  ZRANGE, for each caller ZADD, ZRANGE; PUBLISH if the head is earlier now
//	claim.lua     TIME, 2 ZRANGEBYSCORE, ZRANGE, GET; with timers GET, SET, ZADD, 1 or 2 ZREM
//	return.lua    for each ZREM and ZADD; as schedule.lua
//	extend.lua    TIME, ZMSCORE, ZADD
//
// Ack and Remove are plain ZREM, Drop is UNLINK.
//
// # Wake-ups
//
// A script that makes another timer the earliest of its shard publishes its moment. A
// message can be lost; the claims that consumers make anyway find the same. The process that
// scheduled hears it from the reply. [Index.Run] has one connection for messages, in a
// Cluster one per shard; it is tried every second, and opened again when it is silent.
//
// # Losses
//
// A server that lost all data lost complete, too. One that lost only the last writes, as after a
// failover, is not noticed, nor is a loss while the index is being rebuilt: what
// is missing is put back before it is due by whoever compares the index with the rows.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, so that a silent network ends with the
// context, and MaxRetries -1: one that repeats an Ack whose answer was lost would report a
// lost lease that was none, and one that repeats a Claim would leave the timers of the
// first to the end of their lease. [New] refuses clients without these.
//
// The server needs Redis 6.2, in a Cluster Redis 7 for messages, and maxmemory-policy noeviction.
// The scripts run on miniredis.
package redisindex
