// Package breaker has a circuit breaker in front of a lock service.
//
// A service is unavailable if a call has failed and no other call has had an answer since that one began: an
// ensemble with one paused server fails some calls and answers others. From then on calls fail at once, so that
// no holder of one lock waits for another lock that nobody grants.
//
// Three steps, each a method:
//
//  1. [Breaker.Record] notes how a call ended, and opens or closes the breaker.
//  2. The breaker probes an open or suspect service every 300 ms with a key that nobody needs.
//  3. [Breaker.Run] waits for a probe that has an answer, which closes the breaker.
//
// Run is the only goroutine, besides its probes, which end with it. Mutual exclusion is the business of the service:
// a breaker grants nothing itself.
package breaker
