package redislock

import (
	"fmt"
	"strings"
)

// keys are the Redis keys of a lock, and that of one of its conditions: they
// share a hash tag.
func (c *Cond) keys(k keySet, key string) []string { return append(k.all(), c.asleep(key)) }

// asleep is the sorted set of those who wait for a signal.
func (c *Cond) asleep(key string) string {
	if tag, ok := tagOf(key); ok {
		return c.l.cfg.Prefix + "{" + tag + "}:cond:" + c.name + ":" + key
	}
	return c.l.cfg.Prefix + "{" + key + "}:cond:" + c.name
}

// checkCond refuses names that would make the keys of two conditions the same.
func checkCond(name string) error {
	if name == "" || strings.ContainsAny(name, ":{}") {
		return fmt.Errorf("redislock: the name of a condition is empty or has a colon or a brace: %q", name)
	}
	return nil
}
