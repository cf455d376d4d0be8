// Package redistokens is a semaphore in Redis whose permits are tokens in lists, and ReleaseAll
// for a process that was restarted. See [Tokens] for its data and promises.
//
// Package redissem is the better choice where it can be had. This one is the textbook's
// semaphore of a list, with what that needs besides LPOP and RPUSH.
package redistokens
