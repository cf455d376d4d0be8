// Package redistokens implements the textbook semaphore on a Redis list, to compare and to learn from. Each permit is a
// token in a list. A process takes a token with BLPOP and returns it with RPUSH. A hash counts the tokens of each
// process, so that a restarted process can return those of its predecessor.
//
// Package redissem is the semaphore to use: this one has no lease. [Tokens] documents what is lost, and names the test
// that shows each loss.
package redistokens
