package redislock

import (
	"fmt"
	"strings"

	"example.com/shop/internal/platform/redisx"
)

// Every key of a lock is built here. All keys of one lock have the same hash
// tag, so that they live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:lock:"

// keySet are the Redis keys of one lock.
type keySet struct {
	lock  string // the grant, OWNER:FENCE, for the TTL of the lock
	fence string // the last token, when it was issued, and who was force-released last
	queue string // sorted set: waiters by ticket
	alive string // hash: until when each waiter lives, the validity of a notified grant, and the stamp it gave
}

func (k keySet) all() []string { return []string{k.lock, k.fence, k.queue, k.alive} }

// keysOf returns the keys of a lock. A key without a hash tag becomes the tag, in
// PREFIX{KEY}ROLE. A key that contains a tag lives with all that contain the same
// one, in PREFIX{TAG}:ROLE:KEY. Neither form can be mistaken for the other.
func keysOf(prefix, key string) keySet {
	if tag, ok := redisx.TagOf(key); ok {
		base := prefix + "{" + tag + "}:"
		return keySet{base + "lock:" + key, base + "fence:" + key, base + "queue:" + key, base + "alive:" + key}
	}
	base := prefix + "{" + key + "}"
	n := len(base)
	all := base + ":fence" + base + ":queue" + base + ":alive" // one string, cut into three
	return keySet{base, all[:n+6], all[n+6 : 2*n+12], all[2*n+12:]}
}

// keys are the Redis keys of a lock, and the sorted set of the waiters for a signal: they share a hash tag.
func (c *Cond) keys(key string) []string {
	prefix, asleep := c.l.cfg.Prefix, "{"+key+"}:cond:"+c.name
	if tag, ok := redisx.TagOf(key); ok {
		asleep = "{" + tag + "}:cond:" + c.name + ":" + key
	}
	return append(keysOf(prefix, key).all(), prefix+asleep)
}

// checkCond refuses names that would make the keys of two conditions the same.
func checkCond(name string) error {
	if name == "" || strings.ContainsAny(name, ":{}") {
		return fmt.Errorf("redislock: the name of a condition is empty or has a colon or a brace: %q", name)
	}
	return nil
}
