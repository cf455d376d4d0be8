// Package redissem implements a distributed semaphore on Redis: permits with leases and weights, first come, first
// served, resizable under load. [Semaphore] documents its data and guarantees.
//
// It is a package of its own because a semaphore shares no data with a lock. Package redisx has the parts that both
// use.
package redissem
