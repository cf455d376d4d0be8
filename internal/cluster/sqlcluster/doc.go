// Package sqlcluster implements the member list and the election of package cluster on database/sql: SQLite, MariaDB,
// MySQL or PostgreSQL. It needs no service besides the application's database. The configuration is cluster.Fixed.
//
// # Data
//
// The package owns two tables, whose definition is [Schema]:
//
//	cluster_members  group_name, name, incarnation, address, entry, expires_at
//	cluster_leaders  group_name, name, token, entry, expires_at
//
// An entry is the text of cluster.EncodeMember or cluster.EncodeLeader. The incarnation is new for each call of Join. The
// token is the number of the term. It has 20 digits, so texts compare as numbers do. Times are microseconds since 1970 by
// the clock of the database, which each statement reads. No client's clock is used. A row whose time is over does not
// count. Join deletes members that are a day old. The row of an election remains, so that its token grows.
//
// # Operations
//
// Each statement is a transaction of its own. So a client that dies or is paused keeps no row locked.
//
//	Join                UPDATE a row that is free or one's own; INSERT; otherwise SELECT the holder every Poll
//	renewal             UPDATE every TTL/3; never creates a row
//	Leave               DELETE
//	a poll              SELECT every Poll and sequence, by the primary key; it takes no lock
//	a candidate         SELECT every Poll; if the term has expired, UPDATE or INSERT
//	a leader            UPDATE every TTL/3
//	Resign              UPDATE
//	Hold                UPDATE, in a transaction of the leader's work
//
// A statement names the incarnation or the term, so all of them can be repeated, and a lost reply costs one repetition.
// An instance writes three rows per TTL, and the leader three more.
//
// # Election
//
// A candidate replaces the row that it has read, and no other one. So of several candidates one is elected, and a
// statement that arrives late elects no candidate. If its reply is lost, the candidate finds its own name at the next poll
// (TestLostReplyElects). If the candidate gives up before, the term has no leader and expires. The new token is greater than
// the last one and than the clock, so it grows after the row was deleted or restored (TestTermsGrowOverALossOfTheRow).
//
// [Election.Hold] locks the row until a transaction of the leader ends. Candidates and renewals wait meanwhile, so such a
// transaction should be shorter than TTL/3. A longer one ends the term, and no other term begins before its commit
// (TestNoTermBeginsDuringATransactionOfTheLast).
//
// # Failures
//
// If the database was unavailable for longer than rows last, it lists no live member at first. Each member finds its row
// expired at the next renewal and joins again. An observer that had no answer for half a TTL keeps the old list, and
// reports it as stale, for two thirds of the TTL or until all earlier members are back (TestOutageIsNotADeath).
//
// A process that is paused inside a write keeps a SQLite file locked until it resumes. Meanwhile no instance can renew or join.
// On a server, a leader that is paused inside a transaction of its work keeps the row locked until the server ends the
// transaction. Meanwhile no candidate is elected.
//
// A clock of the database that is set forward has the same effect. The leader then loses its term, and is refused until
// it is elected again. If the clock is set back, a row that ends later than 2 TTL from now does not count, so a dead
// leader or member stays for 2 TTL at most. A live one may be replaced, or is missing until its next renewal.
package sqlcluster
