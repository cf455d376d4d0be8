// Package redisindex is [timeout.Index] on Redis: standalone, behind Sentinel, or a Cluster.
//
// # Data
//
// The timers of a kind and partition are spread over Config.Shards shards by their id.
// One shard is two keys with one hash tag, in one slot of a Cluster:
//
//	shop:timeout:{KIND:PARTITION:N}:pending   zset    ID by due time in ms
//	shop:timeout:{KIND:PARTITION:N}:complete  string  number of shards, once the index is complete
//	shop:timeout:wake                         channel KIND:PARTITION:N DUE; in a Cluster shop:timeout:{KIND:PARTITION:N}:wake, sharded
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
// A claim removes ids from pending by the server's clock, in one script. So one consumer gets a
// timer, as with the ZREM of package textbook, and Redis has no record of the claim. The rows make that
// safe: if the consumer dies or the reply is lost, the overdue scan of package timeout finds the row after 2 to 3 s.
// A lease in Redis would bring the timer back later, and cost a second sorted set, a token, and a call per claim:
// 5.0 µs of Redis per timer in batches of 128, where a claim costs 3.2 (BenchmarkDrain).
//
// # Round trips
//
// Concurrent calls of Schedule share scripts: while one is on its way to a shard
// the entries for the next are batched, at most 512, and each caller gets the outcome
// of the script that had its entries. A lone caller does not wait. Every script costs
// O(n log m) for the n timers it touches, at most 512, out of m.
//
//	schedule.lua  ZRANGE, for each caller ZADD, ZRANGE; PUBLISH if the head is earlier now
//	claim.lua     TIME, GET, ZRANGEBYSCORE, ZRANGE; with timers ZREM
//
// Remove is a plain ZREM, Drop is UNLINK.
//
// # Wake-ups
//
// A script that makes another timer the earliest of its shard publishes its moment. A
// message can be lost; the next poll finds the same. The process that
// scheduled reads the moment from the reply. [Index.Run] has one connection for messages, in a
// Cluster one per shard. It is probed every second, and opened again when it is silent.
//
// # Losses
//
// A server that lost all data lost complete, too. A loss of the last writes alone, as after a
// failover, is not detected, nor is a loss during a rebuild. The look-ahead scan of the leader puts the missing
// entries before they are due.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, so that a silent network ends with the
// context, and MaxRetries -1: one that repeats a Claim would leave the timers of the
// first to the overdue scan. [New] refuses clients without these.
//
// The server needs Redis 6.2, in a Cluster Redis 7 for messages, and maxmemory-policy noeviction.
// The scripts run on miniredis.
package redisindex
