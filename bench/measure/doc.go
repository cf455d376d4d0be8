// Package measure is shared by the programs that compare this project with others. It has the order of runs,
// statistics, the description of the machine, a Redis server with its usage, and tables.
package measure
