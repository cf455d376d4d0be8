// Package redisrw is a read/write lock in Redis: readers share a key, a writer has it alone,
// phase-fair. See [RW] for its data and promises.
//
// It is alongside redislock and not in it, as its keys, scripts and queue are others: each of
// the two is read alone. What both need of Redis is in package redisx.
package redisrw
