package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/timeout"
)

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
type LeaderToken func(ctx context.Context, tx timeout.Tx) error

// Check calls the token. A nil token always passes.
func (t LeaderToken) Check(ctx context.Context, tx timeout.Tx) error {
	if t == nil {
		return nil
	}
	return t(ctx, tx)
}

// SupersededError means that work was refused because a later leader has claimed the role. It
// matches [dlock.ErrFenced].
//
// The stored number is the term of the election plus an offset, at first 0. An election can start to count again
// because its service was emptied or replaced. A leader whose leadership continues after it has read the row is newer
// than every term in the row. If its number is too low, it raises the offset. A leader whose term has ended cannot
// claim the role. If two elections share a database, as with instances of different flags, their leaders supersede
// each other and never work at the same time.
type SupersededError struct {
	Role              string
	Refused, Accepted dlock.Fence
}

// Error implements error.
func (e *SupersededError) Error() string {
	return fmt.Sprintf("sqlstore: the leader of %q has term %d, and no longer term %d: %v",
		e.Role, e.Accepted.Token, e.Refused.Token, dlock.ErrFenced)
}

// Is makes the error match [dlock.ErrFenced].
func (e *SupersededError) Is(target error) bool { return target == dlock.ErrFenced }

// ClaimRole gives a role to the leader of a term. The lock service must have confirmed that the
// term continues. From then on the tokens of previous leaders fail with [dlock.ErrFenced]. ClaimRole may be
// repeated. It fails if the term has ended, or the database does not answer.
func (s *Store) ClaimRole(ctx context.Context, role string, t Term) (LeaderToken, error) {
	var row termRow
	err := s.repeating(ctx, func(tx *gorm.DB) (err error) {
		if row, err = s.lockedTerm(tx, role); err != nil {
			return err
		}
		// After the row was read: a term that continues now is later than every term in the row.
		if err := t.Err(); err != nil {
			return fmt.Errorf("sqlstore: claim the role %q: %w", role, err)
		}
		row.follow(t.Fence())
		return tx.Exec("UPDATE terms SET term = ?, base = ?, owner = ?, led_at = "+s.engine.Now+" WHERE duty = ?",
			row.Term, row.Base, row.Owner, role).Error
	})
	if err != nil {
		return nil, err
	}
	return s.leaderToken(row), nil
}

// leaderToken returns the token of the leader in the row.
func (s *Store) leaderToken(mine termRow) LeaderToken {
	return func(ctx context.Context, tx timeout.Tx) error {
		if tx == nil {
			return s.writing(ctx, func() error { return s.hold(ctx, s.pool, mine) })
		}
		return s.hold(ctx, tx, mine)
	}
}

// hold keeps the row until the transaction ends, if it is as it was when mine took it.
func (s *Store) hold(ctx context.Context, tx timeout.Tx, mine termRow) error {
	r, err := tx.ExecContext(ctx, "UPDATE terms SET led_at = "+s.engine.Now+" WHERE duty = ? AND term = ? AND owner = ?",
		mine.Role, mine.Term, mine.Owner)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	row, err := readTerm(ctx, tx, mine.Role, "")
	if err != nil {
		return err
	}
	return &SupersededError{Role: mine.Role, Refused: mine.fence(), Accepted: row.fence()}
}

// termRow is the leader of a role. Its term is that of the election, plus the base.
type termRow struct {
	Role       string
	Term, Base int64
	Owner      string
}

func (r *termRow) fence() dlock.Fence { return dlock.Fence{Token: uint64(r.Term), Owner: r.Owner} }

// follow makes r the row of a term that is later than that of r. If its number is not, the service that counts the
// terms has lost its data or was replaced, and its counts continue from here.
func (r *termRow) follow(f dlock.Fence) {
	next := r.Base + int64(f.Token)
	if next < r.Term || next == r.Term && r.Owner != f.Owner {
		next = r.Term + 1
	}
	r.Term, r.Base, r.Owner = next, next-int64(f.Token), f.Owner
}

// lockedTerm locks and reads the row of a role until the transaction ends. It inserts the row if there is none.
func (s *Store) lockedTerm(db *gorm.DB, role string) (termRow, error) {
	ctx, tx := db.Statement.Context, db.Statement.ConnPool
	row, err := readTerm(ctx, tx, role, s.engine.ForUpdate)
	if err != nil || row.Owner != "" {
		return row, err
	}
	_, err = tx.ExecContext(ctx, s.engine.InsertNew+" INTO terms (duty, term, base, owner, led_at) VALUES (?, 0, 0, '', 0)", role)
	if err != nil {
		return row, err
	}
	row, err = readTerm(ctx, tx, role, s.engine.ForUpdate)
	return row, err
}

// readTerm reads the row of a role. A role that never had a leader has an empty row.
func readTerm(ctx context.Context, tx timeout.Tx, role, suffix string) (row termRow, err error) {
	row.Role = role
	rows, err := tx.QueryContext(ctx, "SELECT term, base, owner FROM terms WHERE duty = ?"+suffix, role)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&row.Term, &row.Base, &row.Owner); err != nil {
			return row, err
		}
	}
	return row, rows.Err()
}
