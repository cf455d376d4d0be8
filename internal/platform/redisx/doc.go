// Package redisx has the script calls, subscriptions and notifications that all primitives on Redis
// use.
//
// A lone caller of a script sends it itself, and concurrent callers share round trips. A cancelled caller returns at
// once. A subscription detects a lost connection. Scripts send notifications to waiters.
//
// A subscription does not notice that its node has left a cluster. redis-cli --cluster del-node resets a node and leaves it running.
// If a node keeps the subscription of a Notifier, its waiters poll until the node is shut down.
//
// By default, a client of go-redis repeats a command whose reply was lost three times. Then a lock that was taken
// is reported as held by another caller, and a message is sent twice. The client also waits for a reply as long as
// its own timeouts allow, and ignores its caller's context. [Check] refuses such clients, and package redisclient opens
// others. Callers repeat a request themselves if that is safe.
package redisx
