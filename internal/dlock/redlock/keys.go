package redlock

import "example.com/shop/internal/dlock"

// Every key in Redis is built here.

const defaultPrefix = "shop:redlock:"

// lockKey is the grant of key, OWNER:TOKEN:TIME, for the TTL of the lock. It ends with
// a brace, and no other key does.
func (l *Locker) lockKey(key string) string { return l.cfg.Prefix + "{" + key + "}" }

// fenceKey is the last token of key, and who was force-released last.
func (l *Locker) fenceKey(key string) string { return l.lockKey(key) + ":fence" }

// knownKey exists on a server that has not lost its data since it was first used, and
// settlingKey for a time after that.
func (l *Locker) knownKey() string { return l.cfg.Prefix + "known" }

func (l *Locker) settlingKey() string { return l.cfg.Prefix + "settling" }

// pairs are the keys and the arguments for each.lua.
func (l *Locker) pairs(held []dlock.Held) (keys []string, args []any) {
	keys, args = make([]string, 0, 2*len(held)), make([]any, 1, 1+len(held))
	args[0] = l.cfg.TTL.Milliseconds()
	for _, h := range held {
		keys = append(keys, l.lockKey(h.Key), l.fenceKey(h.Key))
		args = append(args, h.Fence.Owner)
	}
	return keys, args
}
