// Package rediscluster implements the member list and the leader announcements of package cluster on Redis, for a
// service without ZooKeeper. Elections also need a locker, of any backend. The configuration is cluster.Fixed.
//
// # Data
//
//	shop:cluster:{members}         hash    NAME: INC;MEMBER       twice the TTL after the last renewal of any
//	shop:cluster:{members}:leases  zset    NAME by when it ends   the same
//	shop:cluster:{members}:state   hash    epoch, revision        a day
//	shop:cluster:leader:KEY        string  TOKEN;LEADER           TTL
//
// MEMBER is name;address;role;version;started and LEADER is name;token;owner;since, with escapes. INC is new for
// each call of Join. A lease ends by the clock of the server, in milliseconds; no client's clock is used. A member
// without a lease does not count.
//
// The revision counts changes: joins, leaves, and expired leases, which the next script counts. An observer sends
// its revision with every Poll, and receives a list only if the revision has changed (QuietWatcherGetsNoLists).
// There are no notifications. A change is seen within Poll, and a storm costs each observer one list per Poll
// (StormIsMerged).
//
// # Operations
//
// Each is one script and one round trip. It takes O(n) for n members if a list is sent, and otherwise O(log n).
//
//	Join                join.lua   takes a name that is free, or its own, or that of the same address
//	renewal             renew.lua  every TTL/3; never creates an entry
//	Leave               leave.lua
//	a poll              list.lua   every Poll and sequence
//	an announcement     post.lua   every TTL/3; GET every Poll by each observer
//	its end             clear.lua
//
// All of them can be repeated, so a lost reply costs one repetition. Leave and the end of an announcement are
// repeated for half a Timeout, because no other client deletes these entries before the TTL
// (RefusedEndsAreRepeated).
//
// # Failures
//
// A server that restarts empty lists no member at first. Each member finds its lease gone at the next renewal and joins
// again. A server that keeps its data, but was unavailable for longer than leases last, behaves the same way. A list
// that lacks live members for that reason would look like their death. An observer can detect it: the epoch differs, or
// there was no answer for half a TTL. Then the old list is reported stale, for two thirds of the TTL or until all
// earlier members are back (ServerIsAway). Members that have not joined by then are gone (MemberDiesWithTheData). A
// replica that has taken over behaves like such a server if it had no members. Otherwise it lacks the last changes.
//
// After a loss of data an observer sees no leader, until the announcement is posted again.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, and MaxRetries -1; redisx.New creates such a client. The scripts need
// Redis 5. All keys of the membership are in one slot of a Cluster (RedisCluster). The server must not evict keys:
// maxmemory-policy noeviction.
package rediscluster
