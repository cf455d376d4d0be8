// Package sqldb classifies the errors of the database drivers for SQLite, MariaDB and MySQL: a deadlock, a busy
// database, a broken connection. Packages that use a [database/sql.DB] need not import the drivers.
//
// An error without a class is a mistake in a statement or in the schema, and no retry helps. The functions unwrap
// errors.
package sqldb

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"

	sqlitedriver "github.com/glebarez/go-sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
)

// Transient reports whether err says that a transaction was in another one's way:
// deadlock, lock timeout, snapshot conflict, a busy file. It has been, or must be,
// rolled back, and may be tried again from its start.
func Transient(err error) bool {
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch e.Number {
		case 1205, // lock wait timeout
			3572, // NOWAIT, on MySQL
			1213, // deadlock
			1020: // snapshot conflict (innodb_snapshot_isolation)
			return true
		}
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const busy, locked = 5, 6
		primary := e.Code() & 0xff
		return primary == busy || primary == locked
	}
	return false
}

// LockTimeout reports whether err says that a row stayed locked for the session's maximum wait, which may be zero.
func LockTimeout(err error) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && (e.Number == 1205 || e.Number == 3572) // the latter is what MySQL says to NOWAIT
}

// Late reports whether err says that the server ended a statement which took longer than it was to.
func Late(err error) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && (e.Number == 1969 || e.Number == 3024) // MariaDB's max_statement_time, MySQL's MAX_EXECUTION_TIME
}

// Broken reports whether err says that the database cannot be reached or refuses to
// work. Whether a statement that was under way has been executed is then unknown,
// unless [Refused] says otherwise.
func Broken(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch e.Number {
		case 1021, // disk full
			1040, // too many connections
			1053, // server shutdown in progress
			1114, // table full
			1203, // too many connections of one user
			1290, // read only
			1317, // query interrupted
			1836, // read only
			1927, // connection killed
			1969, // took longer than a statement may
			3024: // the same, on MySQL
			return true
		}
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const readonly, ioerr, full, cantopen = 8, 10, 13, 14
		switch e.Code() & 0xff {
		case readonly, ioerr, full, cantopen:
			return true
		}
	}
	return false
}

// Unreachable reports whether err says that no server answers, or that it accepts no session now: it is starting or
// stopping, or has too many. Another attempt to connect may succeed. A SQLite file is never unreachable.
func Unreachable(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok { // and no net.Error, which a missing file is as well
		return true
	}
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && (e.Number == 1040 || e.Number == 1053 || e.Number == 1203)
}

// Duplicate reports whether err says that a key is stored already.
func Duplicate(err error) bool {
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		return e.Number == 1062
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const primaryKey, unique = 1555, 2067
		return e.Code() == primaryKey || e.Code() == unique
	}
	return false
}

// Refused reports whether err proves that a single statement outside a transaction
// has changed nothing: the database itself answered that it failed.
func Refused(err error) bool {
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch e.Number {
		case 1053, // server shutdown in progress
			1180, // error during COMMIT
			1317, // query interrupted
			1927: // connection killed
			return false
		}
		return true
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const interrupt, ioerr = 9, 10
		primary := e.Code() & 0xff
		return primary != interrupt && primary != ioerr
	}
	return false
}
