// Package redistokens implements a distributed semaphore on Redis whose permits are tokens in lists. ReleaseAll
// releases the tokens of a process that was restarted. [Tokens] documents its data and guarantees.
//
// Package redissem is the better choice where it is available. This package is the common semaphore of a list, with the
// parts that LPOP and RPUSH alone lack.
package redistokens
