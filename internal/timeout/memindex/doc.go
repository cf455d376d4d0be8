// Package memindex is the index of package timeout in the memory of one process: the default without Redis, and the
// index of tests. It uses the clock of package time, so it runs in a synctest bubble.
//
// A timer type and partition is one shard: a heap of entries by due time, so every operation costs O(log n) per
// timer. It is empty when the process starts, and grants the first look-ahead pass at once.
package memindex
