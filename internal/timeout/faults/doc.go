// Package faults tests the guarantees of package timeout with real servers: Redis and
// MariaDB as child processes that are killed, wiped and cut off, and consumers in
// processes of their own that are killed and paused. It has only tests.
//
// Every test places orders, each a row and its timer in one transaction, and injects its fault
// meanwhile. Then it reads the result from the database: no order lost, none expired
// twice, none before its time by the database's clock, and no unit reserved for an expired order. It prints
// the firing delays that docs/benchmarks/timer-faults.md lists.
//
// The handler of the tests ignores the time, so that only the queue prevents early firing. It
// checks the state of the order in the transaction that changes it, as every handler must.
package faults
