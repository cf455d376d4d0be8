// Package sqlcluster implements the member list and the leader announcements of package cluster on database/sql: SQLite,
// MariaDB or MySQL. It needs no service besides the application's database. Elections also need a locker: sqllock, on
// the same database. The configuration is cluster.Fixed.
//
// # Data
//
// The package owns two tables, whose definition is [Schema]:
//
//	cluster_members  group_name, name, incarnation, address, entry, expires_at
//	cluster_leaders  group_name, name, token, entry, expires_at
//
// An entry is the text of cluster.EncodeMember or cluster.EncodeLeader. The incarnation is new for each call of Join. The
// token has 20 digits, so texts compare as numbers do. Times are microseconds since 1970 by the clock of the database,
// which each statement reads. No client's clock is used. A row whose time is over does not count, and Join deletes those
// that are a day old.
//
// # Operations
//
// Each statement is a transaction of its own. So a client that dies or is paused keeps no row locked.
//
//	Join                UPDATE a row that is free or one's own; INSERT; otherwise SELECT the holder every Poll
//	renewal             UPDATE every TTL/3; never creates a row
//	Leave               DELETE
//	a poll              SELECT every Poll and sequence, by the primary key; it takes no lock
//	an announcement     UPDATE or INSERT every TTL/3
//	its end             DELETE
//
// A statement names the incarnation or the term, so all of them can be repeated, and a lost reply costs one repetition.
// An instance writes three rows per TTL, and the leader three more.
//
// # Failures
//
// If the database was unavailable for longer than rows last, it lists no live member at first. Each member finds its row
// expired at the next renewal and joins again. An observer that had no answer for half a TTL keeps the old list, and
// reports it as stale, for two thirds of the TTL or until all earlier members are back (TestOutageIsNotADeath).
//
// A process that is paused inside a write keeps a SQLite file locked until it resumes. Meanwhile no instance can renew or join.
//
// A clock of the database that is set forward has the same effect. If it is set back, dead members stay for longer.
package sqlcluster
