// Package faults tests the guarantees of package timeout on real servers, under faults. It has only tests.
//
// Redis and MariaDB run as child processes that are killed, wiped and cut off. Consumers run in processes of their
// own that are killed and paused.
//
// Every test places orders, each a row and its timer in one transaction, and injects its fault meanwhile. Then it reads
// the result from the database. No order is lost, none expired twice or early by the database's clock, and no expired
// order has units reserved. It prints the firing delays that docs/benchmarks/timer-faults.md lists.
//
// The handler of the tests ignores the time, so only the queue prevents early firing. It checks the state of the
// order in the transaction that changes it, as every handler must.
package faults
