package sqllock

import (
	"strconv"
	"strings"

	"example.com/shop/internal/dlock/driver"
)

// Dialect names the engine of a database.
type Dialect int

// The engines.
const (
	SQLite Dialect = iota + 1
	MySQL          // and MariaDB
)

// statements are the queries per engine. %now is the time in microseconds since 1970, read once per statement. %block
// is the number of fencing tokens of a grant; a row has the first of them.
type statements struct {
	// take gives a key to an owner if no other owner has it. It returns the
	// token, or nothing, or 0, if somebody has. An owner that has the key already has it
	// for another TTL, with the same token.
	take string

	// byID says that take returns the token as the identity of the last insertion.
	byID bool

	// release frees a key that an owner holds with a token.
	release string

	// free begins to free keys, whatever their tokens; renew begins to renew them. Conditions on rows follow.
	free, renew string

	// poll begins to read rows.
	poll string

	// force frees a key, whoever holds it. raiseCounter raises the token of a key.
	force, raiseCounter string
}

const (
	// keeps is the condition that an owner holds a key.
	keeps = "(name = ? AND owner = ? AND fence = ?)"

	release = "UPDATE leases SET owner = '', expires_at = 0 WHERE " + keeps + " AND expires_at > %now"
	free    = "UPDATE leases%key SET owner = '', expires_at = 0 WHERE "
	renew   = "UPDATE leases%key SET expires_at = %now + ? WHERE expires_at > %now AND "
	poll    = "SELECT name, owner, fence, forced, since_at, expires_at - %now FROM leases%key WHERE "
)

// sqliteStatements are for 3.35 or later. A refused attempt writes and flushes nothing.
func sqliteStatements() statements {
	const now = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000" // has milliseconds, and no more
	s := statements{
		take: `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at)
VALUES (?, ?, %now, 0, %now, %now + ?)
ON CONFLICT (name) DO UPDATE SET
  fence = CASE WHEN leases.expires_at <= %now THEN MAX(leases.fence + %block, %now) ELSE leases.fence END,
  since_at = CASE WHEN leases.expires_at <= %now THEN %now ELSE leases.since_at END,
  owner = excluded.owner,
  expires_at = excluded.expires_at
WHERE leases.expires_at <= %now OR leases.owner = excluded.owner
RETURNING fence`,
		force: "UPDATE leases SET forced = fence, fence = MAX(fence + %block, %now), owner = '', expires_at = 0 WHERE name = ? AND expires_at > %now",
		raiseCounter: `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at) VALUES (?, '', ?, 0, 0, 0)
ON CONFLICT (name) DO UPDATE SET fence = MAX(leases.fence, excluded.fence)`,
	}
	return s.complete(now, "")
}

// mysqlStatements are for MariaDB and MySQL, which have no RETURNING in common. But an
// identity that a statement sets by LAST_INSERT_ID comes back with its result. The
// columns of the conditions change last, so that it does not matter whether an
// assignment sees those before it.
func mysqlStatements() statements {
	const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))" // whatever the session's time zone
	s := statements{
		take: `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at)
VALUES (?, ?, LAST_INSERT_ID(%now), 0, %now, %now + ?)
ON DUPLICATE KEY UPDATE
  fence = CASE
    WHEN expires_at <= %now THEN LAST_INSERT_ID(GREATEST(fence + %block, %now))
    WHEN owner = VALUES(owner) THEN LAST_INSERT_ID(fence)
    ELSE fence + LAST_INSERT_ID(0) END,
  since_at = IF(expires_at <= %now, %now, since_at),
  owner = IF(expires_at <= %now, VALUES(owner), owner),
  expires_at = IF(expires_at <= %now OR owner = VALUES(owner), VALUES(expires_at), expires_at)`,
		byID:  true,
		force: "UPDATE leases SET forced = fence, fence = GREATEST(fence + %block, %now), owner = '', expires_at = 0 WHERE name = ? AND expires_at > %now",
		raiseCounter: `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at) VALUES (?, '', ?, 0, 0, 0)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))`,
	}
	// Without the name of the index a small table is read, and locked, as a whole.
	return s.complete(now, " FORCE INDEX (PRIMARY)")
}

// complete adds what the engines have in common.
func (s statements) complete(now, key string) statements {
	fill := strings.NewReplacer("%now", now, "%key", key, "%block", strconv.Itoa(driver.TurnsPerGrant)).Replace
	return statements{
		take: fill(s.take), byID: s.byID, release: fill(release), free: fill(free), renew: fill(renew), poll: fill(poll),
		force: fill(s.force), raiseCounter: fill(s.raiseCounter),
	}
}

// anyOf joins n conditions.
func anyOf(condition string, n int) string {
	return "(" + condition + strings.Repeat(" OR "+condition, n-1) + ")"
}
