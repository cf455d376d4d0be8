// Package redissem is a semaphore in Redis: permits with leases and weights, first come, first
// served, resized under load. See [Semaphore] for its data and promises.
//
// It is alongside redislock and not in it, as a semaphore shares no data with a lock: each of
// the two is read alone. What both need of Redis is in package redisx.
package redissem
