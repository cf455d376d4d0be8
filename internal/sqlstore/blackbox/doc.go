// Package blackbox tests package sqlstore through its exported methods, on SQLite, MariaDB, PostgreSQL and Galera. It has nothing but
// tests. A test file has the name of the file in sqlstore that it tests. The other test files are named by a
// situation: baskets, batches, clocks, faults, late writes, locked rows, sales.
package blackbox
