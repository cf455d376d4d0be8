// Package rediscluster is the membership and the registry of package cluster on Redis, for
// a service without ZooKeeper. Elections need a locker besides, of any kind; the
// configuration is cluster.Fixed.
//
// # Data
//
//	shop:cluster:{members}         hash    NAME: INC;MEMBER       twice the TTL after the last renewal of any
//	shop:cluster:{members}:leases  zset    NAME by when it ends   the same
//	shop:cluster:{members}:state   hash    epoch, revision        a day
//	shop:cluster:leader:KEY        string  TOKEN;LEADER           TTL
//
// MEMBER is name;address;role;version;started and LEADER is name;token;owner;since, with
// escapes. INC is new for each call of Join. A lease ends by the clock of the server, in
// milliseconds; no client's clock enters. A member without a lease does not count.
//
// The revision counts changes: joins, leaves, and leases that have ended, which whoever
// comes next announcements. Who watches asks every Poll with the revision that it knows, and is
// sent a list only if there is another one (QuietWatcherGetsNoLists). There is no push: a
// change is seen within Poll, and a storm costs each that watches one list per Poll
// (StormIsMerged).
//
// # Operations
//
// Each is one script and one round trip; they run in O(n) for n members when a list is
// sent, and otherwise in O(log n).
//
//	Join        join.lua   takes a name that is free, or its own, or that of the same address
//	renewal     renew.lua  every TTL/3; never makes an entry
//	Leave       leave.lua
//	a look      list.lua   every Poll and sequence
//	an announcement    post.lua   every TTL/3; GET every Poll by each that observes
//	its end     clear.lua
//
// All of them can be repeated, so that a lost reply costs a repetition. Leave and the end of an announcement are
// repeated for half a Timeout, as nobody else deletes these entries before the TTL (RefusedEndsAreRepeated).
//
// # Failures
//
// A server that comes back empty lists nobody, and then one member after the other, as
// each finds its lease gone at the next renewal and joins again. So does one that keeps
// its data and was away for longer than leases last. A list that lacks live members for
// that reason would look like their death. But who watches can tell: by another epoch,
// or by not having had an answer for half a TTL. Then for two thirds of the TTL, or until
// all that were known are back, the new list is not used, and the old one is stale
// (ServerIsAway). Those that have not come back by then are gone (MemberDiesWithTheData).
// A replica that has taken over is such a server if it had none of the members, and
// otherwise lacks the last changes.
//
// An observer sees no leader after a loss of data, until the announcement is posted again.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, and MaxRetries -1; redisx.New makes such. The
// scripts need Redis 5. All keys of the membership are in one slot of a Cluster (RedisCluster).
// The server must not evict keys: maxmemory-policy noeviction.
package rediscluster
