package redislock

import (
	"errors"
	"fmt"
	"strings"
)

// Every key of a lock is built here. All keys of one lock have the same hash
// tag, so that they live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:lock:"

// keySet are the Redis keys of one lock.
type keySet struct {
	lock  string // the grant, OWNER:FENCE, for the TTL of the lock
	fence string // the last token, when it was issued, and who was forced out last
	queue string // sorted set: waiters by ticket
	alive string // hash: until when each waiter lives, the validity of a pushed grant, and the stamp it gave
}

func (k keySet) all() []string { return []string{k.lock, k.fence, k.queue, k.alive} }

// keysOf returns the keys of a lock. A key without a hash tag becomes the tag, in
// PREFIX{KEY}ROLE. A key that contains a tag lives with all that contain the same
// one, in PREFIX{TAG}:ROLE:KEY. Neither form can be mistaken for the other.
func keysOf(prefix, key string) keySet {
	if tag, ok := tagOf(key); ok {
		base := prefix + "{" + tag + "}:"
		return keySet{base + "lock:" + key, base + "fence:" + key, base + "queue:" + key, base + "alive:" + key}
	}
	base := prefix + "{" + key + "}"
	n := len(base)
	all := base + ":fence" + base + ":queue" + base + ":alive" // one string, cut into three
	return keySet{base, all[:n+6], all[n+6 : 2*n+12], all[2*n+12:]}
}

// tagOf returns what stands between the first opening brace and the next closing
// one, if anything does.
func tagOf(key string) (string, bool) {
	_, after, _ := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(after, "}")
	return tag, closed && tag != ""
}

// checkKey refuses keys that would end their hash tag too early.
func checkKey(key string) error {
	if key == "" {
		return errors.New("redislock: the key is empty")
	}
	if _, ok := tagOf(key); !ok && strings.Contains(key, "}") {
		return fmt.Errorf("redislock: key %q has a closing brace and no hash tag", key)
	}
	return nil
}
