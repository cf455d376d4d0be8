// Package driver has the building blocks for backends of package dlock. Users of locks do not need it.
//
// A backend turns a grant of its store into a lease by [dlock.NewLease]. The other parts are the same for all
// backends:
//
//   - [Renewer] renews the grants of a client, many of them per call to the store.
//   - [Rollback] rolls back attempts with an unknown outcome, as [dlock.ErrUncertain] guarantees.
//   - [Enter] makes a lock reentrant.
package driver
