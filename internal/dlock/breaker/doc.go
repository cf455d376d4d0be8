// Package breaker is a circuit breaker for a lock service: while the service is unavailable, calls fail at once.
//
// A service is unavailable if a call has failed and no other call has had an answer since that call began. (An
// ensemble with one paused server fails some calls and answers others.) A call that failed within 100 ms may have met a
// cut connection, so a probe has to fail as well. From then on calls fail at once, so no
// holder of one lock waits for another lock that cannot be granted.
//
// Three steps, each a method:
//
//  1. [Breaker.Record] records how a call ended, and opens or closes the breaker.
//  2. The breaker probes an open or suspect service every 300 ms with a key that no caller uses.
//  3. [Breaker.Run] waits for a probe that has an answer, which closes the breaker.
//
// Run is the only goroutine, besides its probes, which end with it. A breaker grants no locks, so mutual exclusion
// depends on the service alone. It is by hand, because libraries count failures, and here one paused server of three causes
// many while the others grant locks.
package breaker
