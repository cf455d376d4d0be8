// Package memindex is the index of package timeout in the memory of one process: the default without Redis, and the
// index of tests. It uses the clock of package time, so it runs in a synctest bubble.
//
// A timer type and partition is one shard: a heap of entries by due time, so every operation costs O(log n) per
// timer. It is empty after each start of the process, and reports that as a loss of data.
package memindex
