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
	"slices"

	sqlitedriver "github.com/glebarez/go-sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
)

// Errors of MariaDB and MySQL.
const (
	snapshotConflict = 1020 // with innodb_snapshot_isolation
	diskFull         = 1021
	tooMany          = 1040 // connections
	shutdown         = 1053 // in progress
	duplicateKey     = 1062
	tableFull        = 1114
	commitFailed     = 1180
	tooManyOfUser    = 1203
	lockTimeout      = 1205
	deadlock         = 1213
	readOnly         = 1290
	interrupted      = 1317
	readOnlySession  = 1792 // its transactions are
	readOnlyMode     = 1836
	killed           = 1927
	statementTime    = 1969 // MariaDB's max_statement_time is over
	executionTime    = 3024 // MySQL's MAX_EXECUTION_TIME is over
	notAwaited       = 3572 // what MySQL says to NOWAIT
	idle             = 4031 // MySQL's wait_timeout is over
)

// Primary error codes of SQLite, and extended ones of duplicate keys.
const (
	sqliteBusy, sqliteLocked, sqliteReadOnly, sqliteInterrupt = 5, 6, 8, 9
	sqliteIOErr, sqliteFull, sqliteCantOpen                   = 10, 13, 14
	sqlitePrimaryKey, sqliteUnique                            = 1555, 2067
)

// server reports whether err is one of these errors of MariaDB or MySQL.
func server(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// file reports whether err is one of these errors of SQLite.
func file(err error, codes ...int) bool {
	e, ok := errors.AsType[*sqlitedriver.Error](err)
	return ok && (slices.Contains(codes, e.Code()) || slices.Contains(codes, e.Code()&0xff))
}

// cut reports whether err says that a connection has ended.
func cut(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Transient reports whether err says that a transaction was in another one's way:
// deadlock, lock timeout, snapshot conflict, a busy file. It has been, or must be,
// rolled back, and may be tried again from its start.
func Transient(err error) bool {
	return LockTimeout(err) || server(err, deadlock, snapshotConflict) || file(err, sqliteBusy, sqliteLocked)
}

// LockTimeout reports whether err says that a row stayed locked for the session's maximum wait, which may be zero.
func LockTimeout(err error) bool { return server(err, lockTimeout, notAwaited) }

// Late reports whether err says that the server ended a statement which took longer than it was to.
func Late(err error) bool { return server(err, statementTime, executionTime) }

// Broken reports whether err says that the database cannot be reached or refuses to
// work. Whether a statement that was under way has been executed is then unknown,
// unless [Refused] says otherwise.
func Broken(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || cut(err) || Late(err) || ReadOnly(err) || file(err, sqliteReadOnly, sqliteIOErr, sqliteFull, sqliteCantOpen) ||
		server(err, diskFull, tooMany, shutdown, tableFull, tooManyOfUser, interrupted, killed, idle)
}

// ReadOnly reports whether err says that the server refuses to write, as one that was demoted to a replica does. The
// statement has changed nothing. If it is COMMIT, the transaction has been rolled back.
func ReadOnly(err error) bool { return server(err, readOnly, readOnlySession, readOnlyMode) }

// Unreachable reports whether err says that no server answers, or that it accepts no session now: it is starting or
// stopping, or has too many. Another attempt to connect may succeed. A SQLite file is never unreachable.
func Unreachable(err error) bool {
	_, network := errors.AsType[*net.OpError](err) // and no net.Error, which a missing file is as well
	return network || cut(err) || server(err, tooMany, shutdown, tooManyOfUser)
}

// Duplicate reports whether err says that a key is stored already.
func Duplicate(err error) bool {
	return server(err, duplicateKey) || file(err, sqlitePrimaryKey, sqliteUnique)
}

// Refused reports whether err proves that a single statement outside a transaction
// has changed nothing: the database itself answered that it failed.
func Refused(err error) bool {
	_, ofServer := errors.AsType[*mysqldriver.MySQLError](err)
	_, ofFile := errors.AsType[*sqlitedriver.Error](err)
	unknown := server(err, shutdown, commitFailed, interrupted, killed, idle) || file(err, sqliteInterrupt, sqliteIOErr)
	return (ofServer || ofFile) && !unknown
}
