package sqllock

import (
	"strconv"
	"strings"

	"example.com/shop/internal/platform/sqldb"
)

// statements are the queries for an engine. %now is the time in microseconds since 1970, read once per statement.
type statements struct {
	// take gives a key to an owner if no other owner has it. It returns the token, or nothing, or 0, if somebody has. An
	// owner that has the key already has it for another TTL, with the same token.
	take string

	// release frees a key that an owner holds with a token.
	release string

	// free begins to free keys, whatever their tokens; renew begins to renew them. Conditions on rows follow.
	free, renew string

	// poll begins to read rows.
	poll string

	// force frees a key, whoever holds it. raiseCounter raises the token of a key.
	force, raiseCounter string
}

// over is the condition that a lease is over. A row that ends in a far future was written before the clock of the database
// was set back, and its holder may be dead.
const over = "(expires_at <= %now OR expires_at > %now + %far)"

// keeps is the condition that an owner holds a key.
const keeps = "(name = ? AND owner = ? AND fence = ?)"

// takeReturning writes and flushes nothing if it is refused.
const takeReturning = `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at)
VALUES (?, ?, %now, 0, %now, %now + ?)
%conflict
  fence = CASE WHEN %over THEN %greatest(leases.fence + 1, %now) ELSE leases.fence END,
  since_at = CASE WHEN %over THEN %now ELSE leases.since_at END,
  owner = excluded.owner,
  expires_at = excluded.expires_at
WHERE %over OR leases.owner = excluded.owner
RETURNING fence`

// takeByID returns the token as the identity of the last insertion, which LAST_INSERT_ID sets: MariaDB and MySQL have no
// RETURNING in common. The columns of the conditions change last, so that it does not matter whether an assignment sees
// the assignments before it.
const takeByID = `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at)
VALUES (?, ?, LAST_INSERT_ID(%now), 0, %now, %now + ?)
%conflict
  fence = CASE
    WHEN %over THEN LAST_INSERT_ID(%greatest(fence + 1, %now))
    WHEN owner = VALUES(owner) THEN LAST_INSERT_ID(fence)
    ELSE fence + LAST_INSERT_ID(0) END,
  since_at = IF(%over, %now, since_at),
  owner = IF(%over, VALUES(owner), owner),
  expires_at = IF(%over OR owner = VALUES(owner), VALUES(expires_at), expires_at)`

// statementsFor returns the statements for e.
func statementsFor(e *sqldb.Engine, far int64) statements {
	take := takeByID
	if e.Returning {
		take = takeReturning
	}
	column := ""
	if e.Returning { // where the columns of the new row have names too
		column = "leases."
	}
	ended := strings.NewReplacer("expires_at", column+"expires_at", "%now", e.Now, "%far", strconv.FormatInt(far, 10)).Replace(over)
	fill := strings.NewReplacer("%now", e.Now, "%key", e.ByKey, "%over", ended,
		"%conflict", e.OnConflict("name"), "%greatest", e.Greatest).Replace
	return statements{
		take:    fill(take),
		release: fill("UPDATE leases SET owner = '', expires_at = 0 WHERE " + keeps + " AND expires_at > %now"),
		free:    fill("UPDATE leases%key SET owner = '', expires_at = 0 WHERE "),
		renew:   fill("UPDATE leases%key SET expires_at = %now + ? WHERE expires_at > %now AND "),
		poll:    fill("SELECT name, owner, fence, forced, since_at, expires_at - %now FROM leases%key WHERE "),
		force: fill("UPDATE leases SET forced = fence, fence = %greatest(fence + 1, %now), owner = '', expires_at = 0 " +
			"WHERE name = ? AND expires_at > %now"),
		raiseCounter: fill("INSERT INTO leases (name, owner, fence, forced, since_at, expires_at) VALUES (?, '', ?, 0, 0, 0)" +
			"%conflict fence = %greatest(leases.fence, " + e.Proposed("fence") + ")"),
	}
}

// anyOf joins n conditions.
func anyOf(condition string, n int) string {
	return "(" + condition + strings.Repeat(" OR "+condition, n-1) + ")"
}
