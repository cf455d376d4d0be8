// Package membus is the [broadcast.Bus] inside one process: the bus of an instance
// that has no Redis and needs none, and that of tests. It has no clock and no goroutine,
// so that it runs in a synctest bubble.
//
// Publish delivers before it returns, in one order for all buses of a [Hub], and drops
// nothing but what does not fit into the queue of a subscription.
package membus
