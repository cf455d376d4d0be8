// Package redisindex is the index of package timeout on Redis: standalone, behind Sentinel, or a Cluster. It finds
// the timers that are due.
//
// # Data
//
// The timers of a type and partition that are due in the window of package timeout are spread over Config.Shards shards
// by their id. The keys of a shard have one hash tag, and are in one slot of a Cluster:
//
//	shop:timeout:{KIND:PARTITION:N}:pending   zset    ID by due time in ms
//	shop:timeout:{KIND:PARTITION:0}:pass      string  exists from a look-ahead pass until the next one is due
//	shop:timeout:wake                         channel KIND:PARTITION:N DUE; in a Cluster shop:timeout:{KIND:PARTITION:N}:wake, sharded
//
// N counts from 0. In a Cluster it is a number whose slot is in the Nth part of all slots. So shards spread evenly
// over masters that share the slots evenly; choose a multiple of the number of masters. All processes must use the
// same number.
//
// There is no payload and no other key, and every key can be deleted at any time. A pending key expires a day after the last
// write, so that a partition without instances leaves nothing. Version 0.1.0 had a key named complete; nothing reads it. A
// pending timer with an id of 36 characters takes about 140 bytes.
//
// # Claims
//
// One script removes ids from pending by the server's clock. So one consumer gets a timer, as with the ZREM of package
// textbook, and Redis has no record of the claim. The rows make that safe. If the consumer dies or the reply is lost,
// the overdue scan of package timeout finds the row in 2 to 3 s. A lease in Redis would return the timer later, and
// cost a second sorted set, a token, and a call per claim. Redis would spend 5.0 µs per timer in batches of 128, where
// a claim costs 3.2.
//
// # Round trips
//
// Schedule sends one script to each shard at the same time, and another one for every 512 entries. Package timeout batches the
// entries of many orders before. A script costs O(n log m) for n timers, at most 512, out of m.
//
//	schedule.lua  ZRANGE, ZADD LT, PEXPIRE, ZRANGE; PUBLISH if the head is earlier now
//	claim.lua     TIME, ZRANGEBYSCORE, ZRANGE; with timers ZREM
//
// A pass is granted by SET NX with an expiry.
//
// # Wake-ups
//
// A script that makes another timer the earliest of its shard publishes its due time. If the message is lost, the
// next poll finds the timer. The process that scheduled the timer reads the due time from the reply. [Index.Run]
// has one connection for messages, in a Cluster one per shard. The connection is probed every second, and replaced
// if it is silent.
//
// # Losses
//
// A server that lost all data lost the key of the pass, too, and grants the next one at once. A loss of the last writes
// alone, as after a failover, is not detected: the next pass writes them again.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, so that a request on a silent network ends with its context. It needs
// MaxRetries -1, because a repeated Claim would leave the timers of the first Claim to the overdue scan. [New]
// refuses other clients.
//
// The server needs Redis 6.2, in a Cluster Redis 7 for messages, and maxmemory-policy noeviction. The scripts run
// on miniredis.
package redisindex
