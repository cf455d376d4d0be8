package sqlstore

import (
	"context"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
)

// commitError says that the database did not confirm a COMMIT. It matches [order.ErrOutcomeUnknown].
type commitError struct{ err error }

// Error implements error.
func (e *commitError) Error() string { return order.ErrOutcomeUnknown.Error() + ": " + e.err.Error() }

// Is makes the error match [order.ErrOutcomeUnknown].
func (e *commitError) Is(target error) bool { return target == order.ErrOutcomeUnknown }

// Unwrap returns the error of the database.
func (e *commitError) Unwrap() error { return e.err }

// sentError is what the fn of inTx returns if it has sent COMMIT. There was no error if err is nil.
type sentError struct{ err error }

// Error implements error.
func (*sentError) Error() string { return "sqlstore: COMMIT was sent" }

// runToCommit executes c in tx with COMMIT at its end, where [sqldb.Facts.ScriptsCommit], so the rows are locked for one round trip less.
// Like a COMMIT of database/sql it cannot be stopped by a context.
func (s *Store) runToCommit(tx *gorm.DB, c *script) error {
	c.add("COMMIT")
	err := s.run(tx.WithContext(context.WithoutCancel(tx.Statement.Context)), c)
	if sqldb.RolledBack(err) || sqldb.Is(err, sqldb.Duplicate, sqldb.Late) { // a statement before COMMIT has failed
		return err
	}
	return &sentError{err}
}
