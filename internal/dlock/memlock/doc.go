// Package memlock implements the lock and the condition of package dlock in the memory of one process. It is the
// reference backend, for tests and for a service of one instance. It uses the clock of package time, so it runs in a
// synctest bubble.
//
// # Data
//
// A key of a [Locker] has a holder, with the time at which its grant expires, and a queue of waiters. A key without a
// holder has no entry.
//
// # Operations
//
// Each operation takes the one mutex of its Locker, for O(1) work or, in queues, O(n). Release grants the key to
// the first waiter. A waiter also polls when the grant of the holder expires, so progress does not depend on
// Release.
//
// # Crashes
//
// A crash leaves nothing: holders, waiters and keys end together. A goroutine that forgets its lease keeps the key
// for as long as the process renews it, or up to MaxHold.
package memlock
