// Package memcluster is package cluster in memory: for a service of one process, and for
// tests. Its clients share one [Cluster], which loses nothing and is never away, so
// that nothing here waits for an instance that has died.
//
// Elections need a locker besides: memlock.
package memcluster
