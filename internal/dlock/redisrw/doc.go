// Package redisrw implements a distributed read/write lock on Redis: readers share a key, a writer has it alone,
// and phases alternate fairly. [RW] documents its data and guarantees.
//
// It is a package of its own because it shares no keys, scripts or queue with a lock. Package redisx has the parts
// that both use.
package redisrw
