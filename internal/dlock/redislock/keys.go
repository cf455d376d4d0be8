package redislock

import (
	"fmt"
	"strings"
)

// Every key of this package is built here. The braces are a hash tag: both keys
// of a lock live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:lock:"

// lockKey holds the grant, OWNER:FENCE, for the TTL of the lock.
func (l *Locker) lockKey(key string) string { return l.prefix + "{" + key + "}" }

// fenceKey holds the last token issued, for longer than any grant.
func (l *Locker) fenceKey(key string) string { return l.lockKey(key) + ":fence" }

// checkKey refuses keys that would make an empty hash tag, which Redis ignores.
func checkKey(key string) error {
	if key == "" || strings.HasPrefix(key, "}") {
		return fmt.Errorf("redislock: key %q is empty or begins with a brace", key)
	}
	return nil
}
