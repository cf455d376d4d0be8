// Package driver is what backends of package dlock are made of. Those who only use locks do
// not need it.
//
// A backend turns a grant of its store into a lease by [dlock.NewLease]. Everything after that
// is the same for all of them, and here:
//
//   - [Renewer] renews the grants of a client, many of them per call to the store.
//   - [Undo] rolls back attempts whose outcome is unknown: the promise of [dlock.ErrUncertain].
//   - [Turns] lets one caller per key ask the store, where waiters have to poll it.
//   - [Poll] waits for a store that has no queue.
//   - [RWSides] makes a read/write lock reentrant, and [CheckPermits] checks a weight.
package driver
