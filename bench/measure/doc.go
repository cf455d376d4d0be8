// Package measure holds what the programs that measure this project alongside others
// share: how rounds go, statistics over them, the description of the machine, the
// Redis server with what it has used, and tables.
package measure
