package sqldb

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Class is what an error of a database means for the caller. Each engine has one table from its errors to classes.
type Class int

// The classes, in the order of what a caller does about them: nothing, try again, take another connection, find out.
const (
	// None is the class of every other error. If it is the answer of a server, the statement has changed nothing.
	None Class = iota

	// The statement was refused for good, and has changed nothing.

	Duplicate // a key is stored already
	NoSchema  // a table or a column does not exist
	Repeated  // a change of the schema has been made before
	Denied    // the rights, the settings or the mode of the database do not allow the statement
	Full      // the disk, or the table, is full

	// The transaction has been rolled back, or must be, and may be tried again from its start.

	Conflict  // a deadlock, or a busy file
	RowLocked // a row stayed locked for the session's maximum wait, which may be zero
	Late      // the server ended a statement that took longer than it was to

	// The statement has changed nothing, and this connection will never carry it out.

	ReadOnly // the server was demoted to a replica
	Starting // the server accepts no work now: it has too many sessions, is not a part of its cluster, or not ready yet

	// The statement may have been carried out.

	Stopping // the server ends
	Lost     // the connection, or the statement, was ended
)

// Classify returns the class of err, which it unwraps.
func Classify(err error) Class {
	class, _ := classify(err)
	return class
}

// classify also reports whether err is the answer of a database.
func classify(err error) (c Class, answered bool) {
	if err == nil {
		return None, false
	}
	for _, of := range []func(error) (Class, bool){mysqlClass, postgresClass, sqliteClass} {
		if c, answered := of(err); answered {
			return c, true
		}
	}
	if _, network := errors.AsType[net.Error](err); network || cut(err) {
		return Lost, false
	}
	return None, false
}

// cut reports whether err says that a connection has ended.
func cut(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Is reports whether err is of one of classes.
func Is(err error, classes ...Class) bool { return slices.Contains(classes, Classify(err)) }

// Transient reports whether a transaction that failed with err was in another one's way. It has been, or must be,
// rolled back, and may be tried again from its start.
func Transient(err error) bool { return Is(err, Conflict, RowLocked) }

// Broken reports whether the database could not be reached, or not in time, or has dropped the connection. Another
// connection may work. Whether a statement that was under way has been executed is unknown, unless [Unchanged] says
// otherwise.
func Broken(err error) bool { return Is(err, Late, ReadOnly, Starting, Stopping, Lost) }

// Unable reports whether the database refuses to do such work until somebody mends it.
func Unable(err error) bool { return Is(err, Denied, Full) }

// Unreachable reports whether err says that no server answers, or that it accepts no session or no writes now: it is starting
// or stopping, has too many sessions, or is read-only. Another attempt to connect may succeed. A SQLite file is never
// unreachable.
func Unreachable(err error) bool {
	_, network := errors.AsType[*net.OpError](err) // and no net.Error, which a missing file is as well
	_, file := sqliteClass(err)
	return network || cut(err) || !file && Is(err, ReadOnly, Starting, Stopping)
}

// Unchanged reports whether err proves that a single statement outside a transaction has changed nothing: the database
// itself answered that it failed.
func Unchanged(err error) bool {
	class, answered := classify(err)
	return answered && class < Stopping
}

// RolledBack reports whether err, the error of COMMIT, proves that the transaction was rolled back. Most refusals prove
// it on SQLite only: a server may have committed what it could not log.
func RolledBack(err error) bool {
	_, file := sqliteClass(err)
	return Is(err, Conflict, RowLocked, ReadOnly) || file && Unchanged(err)
}
