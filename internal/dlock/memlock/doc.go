// Package memlock is dlock inside one process: the reference backend, for tests
// and for a service that runs alone. Its time is that of the time package, so
// that it runs in a synctest bubble.
//
// # Data
//
// A key of a [Locker] has a holder, with the instant at which its grant expires, and a
// queue of waiters. A key of a [Semaphore] has any number of holders, a key of an [RW]
// a writer or readers, each with an instant of its own. A key that nobody holds or
// waits for has no entry.
//
// # Operations
//
// Each takes the one mutex of its service, for O(1) work or, in queues, O(n). Release
// hands the key to the first waiter. A waiter also polls when the grant of the holder
// expires, so that nothing depends on Release being called.
//
// # What a crash leaves behind
//
// Nothing: holders, waiters and keys end together. A goroutine that forgets its lease
// keeps the key for as long as the process renews it, or up to MaxHold.
package memlock
