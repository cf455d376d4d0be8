// Package zklock is [dlock.Locker] and [dlock.RWLocker] on ZooKeeper.
package zklock
