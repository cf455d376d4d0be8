// Package faults proves what package timeout promises on the real parts: Redis and
// MariaDB as child processes that are killed, wiped and cut off, and consumers in
// processes of their own that are killed and stopped. It has nothing but tests.
//
// Every test places orders, each a row and its timer in one transaction, does its harm
// meanwhile, and then asks the database for the verdict: no order lost, none expired
// twice, none before its time by the database's clock, and the books balanced. It prints
// how late the timers were, which is what docs/timers.md tells.
//
// The handler of the tests does not look at the time. That nothing is early is the
// queue's doing alone. It does look at the state of the order, in the
// transaction that changes it, as every handler must.
package faults
