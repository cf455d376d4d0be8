// Package dlock holds a lock across processes.
package dlock
