// Package memindex is the timeout.Index inside one process: the default without
// Redis, and the index of tests. Its time is that of the time package, so that it
// runs in a synctest bubble.
//
// A kind and partition is one shard: a heap of entries by their moment, so that every operation
// costs O(log n) per timer. It starts empty after each start of the process, which it reports as a loss of data.
package memindex
