// Package memcluster implements package cluster in the memory of one process, for a service of one instance and for
// tests. Its clients share one [Cluster], which loses nothing and is never unavailable, so no call waits for a dead
// instance.
//
// Elections also need a locker: memlock.
package memcluster
