package redisrw

// Every key of the read/write locks is built here. The braces are a hash tag: all
// keys of one lock live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:rw:"

// keys are those of the rwlock scripts, in their order.
func (l *RW) keys(key string) []string {
	base := l.base(key)
	return []string{
		base, base + ":readers",
		base + ":writers-waiting", base + ":readers-waiting", base + ":readers-next", base + ":waits",
	}
}

func (l *RW) base(key string) string { return l.cfg.Prefix + "{" + key + "}" }
