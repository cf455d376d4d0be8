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
type LeaderRoles interface {
	// ClaimRole gives a role to the leader of a term. The lock service must have confirmed that the
	// term continues. From then on the tokens of previous leaders fail with [dlock.ErrFenced]. ClaimRole may be
	// repeated. It fails if the term has ended, or the database does not answer.
	ClaimRole(ctx context.Context, role string, t Term) (LeaderToken, error)

	// VacantRole returns a token for work without a leader. It fails with [ErrLeaderActive] if the
	// leader of the role has worked in the last seconds.
	VacantRole(role string) LeaderToken
}
