package timeout

import (
	"context"
	"errors"

	"example.com/shop/internal/dlock"
)

// ErrLeaderActive means that a leader is active, so that no fallback is needed.
var ErrLeaderActive = errors.New("timeout: a leader is active")

// Term is a leadership term: a [dlock.Lease], or a value that has one.
type Term interface {
	// Fence returns the number of the term, and its owner.
	Fence() dlock.Fence

	// Err returns nil until the term has ended.
	Err() error
}

// LeaderToken checks the right to a leader role where the work is done. It is the first statement of
// each transaction of the work, and its error rolls the transaction back. From then on no
// other leader can pass until the transaction ends. Without a transaction it checks the present state.
type LeaderToken func(ctx context.Context, tx Tx) error

// Check calls the token. A nil token always passes.
func (t LeaderToken) Check(ctx context.Context, tx Tx) error {
	if t == nil {
		return nil
	}
	return t(ctx, tx)
}

// LeaderRoles stores in the database which leader has which role, so that the work of a superseded
// leader is refused. It is safe for concurrent use.
//
// Each kind and partition has one leader among the instances that handle it, elected by Config.Leader under
// the key timeout:PARTITION:KIND. It runs the overdue scan, reassigns orphaned timers and repairs the index.
//
// With [LeaderRoles] the first statement of each of these transactions locks the role's row in the database
// and compares the leader token. A superseded leader is refused, and resigns (SupersededLeaderStops). A leader whose
// database does not answer resigns, too (LeaderWithoutDatabaseResigns). The index has no such check, and
// an entry that is put twice does no harm.
//
// No timer depends on a leader: every instance claims from the index. If the lock service does not answer, and the
// database has seen no active leader for some seconds, all instances scan and reassign timers
// (NoFallbackScanWhileALeaderIsActive). Both lock the rows that they change, so that two instances take different ones.
// Only a leader repairs the index.
//
// A [Local] index has the entries of its own process alone. Each process fires what it scheduled. After a
// restart, or the death of another process, the leader's rebuild and overdue scan fire the rest.
type LeaderRoles interface {
	// ClaimRole gives a role to the leader of a term. The lock service must have confirmed that the
	// term continues. From then on the tokens of previous leaders fail with [dlock.ErrFenced]. ClaimRole may be
	// repeated. It fails if the term has ended, or the database does not answer.
	ClaimRole(ctx context.Context, role string, t Term) (LeaderToken, error)

	// VacantRole returns a token for work without a leader. It fails with [ErrLeaderActive] if the
	// leader of the role has worked in the last seconds.
	VacantRole(role string) LeaderToken
}
