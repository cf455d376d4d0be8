package redislock

// Every key of this package is built here. The braces are a hash tag: both keys
// of a lock live in one slot of a Redis Cluster, as one script requires.

const defaultPrefix = "shop:lock:"

// lockKey holds the grant: OWNER:FENCE, with the TTL of the lock.
func (l *Locker) lockKey(key string) string { return l.prefix + "{" + key + "}" }

// fenceKey holds the last token issued, for longer than any grant.
func (l *Locker) fenceKey(key string) string { return l.lockKey(key) + ":fence" }
