// Package measure is shared by the programs that measure this project alongside others. It has rounds and their
// statistics, the description of the machine, a Redis server and its use of resources, and tables.
package measure
