package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/timeout"
)

var _ timeout.Offices = (*Store)(nil)

// vacantAfter is how long after the last work of a leader a duty counts as one that nobody
// does. Leaders are at work every second.
const vacantAfter = 3 * time.Second

// DeposedError says that work was refused because a later leader has taken the office. It
// matches [dlock.ErrFenced].
type DeposedError struct {
	Duty              string
	Refused, Accepted dlock.Fence
}

// Error implements error.
func (e *DeposedError) Error() string {
	return fmt.Sprintf("sqlstore: %q is done in term %d, and not in term %d any more: %v",
		e.Duty, e.Accepted.Token, e.Refused.Token, dlock.ErrFenced)
}

// Is makes the error match [dlock.ErrFenced].
func (e *DeposedError) Is(target error) bool { return target == dlock.ErrFenced }

// TakeOffice implements [timeout.Offices].
func (s *Store) TakeOffice(ctx context.Context, duty string, t timeout.Term) (timeout.Office, error) {
	var row termRow
	err := s.repeating(ctx, func(tx *gorm.DB) (err error) {
		if row, err = s.lockedTerm(tx, duty); err != nil {
			return err
		}
		// After the row was read: a term that goes on now is later than all that the row can know of.
		if err := t.Err(); err != nil {
			return fmt.Errorf("sqlstore: take %q: %w", duty, err)
		}
		row.follow(t.Fence())
		return tx.Exec("UPDATE terms SET term = ?, base = ?, owner = ?, led_at = "+s.dialect.now+" WHERE duty = ?",
			row.Term, row.Base, row.Owner, duty).Error
	})
	if err != nil {
		return nil, err
	}
	return s.inOffice(row), nil
}

// inOffice returns the office of whoever is in the row.
func (s *Store) inOffice(mine termRow) timeout.Office {
	return func(ctx context.Context, tx timeout.Tx) error {
		if tx == nil {
			return s.writing(ctx, func() error { return s.hold(ctx, s.pool, mine) })
		}
		return s.hold(ctx, tx, mine)
	}
}

// hold keeps the row until the transaction ends, if it is as it was when mine took it.
func (s *Store) hold(ctx context.Context, tx timeout.Tx, mine termRow) error {
	r, err := tx.ExecContext(ctx, "UPDATE terms SET led_at = "+s.dialect.now+" WHERE duty = ? AND term = ? AND owner = ?",
		mine.Duty, mine.Term, mine.Owner)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	row, _, err := readTerm(ctx, tx, s.dialect.now, mine.Duty, "")
	if err != nil {
		return err
	}
	return &DeposedError{Duty: mine.Duty, Refused: mine.fence(), Accepted: row.fence()}
}

// VacantOffice implements [timeout.Offices]. A clock of the database that was set back makes a
// duty vacant that is not: those who stand in do no harm.
func (s *Store) VacantOffice(duty string) timeout.Office {
	return func(ctx context.Context, tx timeout.Tx) error {
		lock := s.dialect.forUpdate
		if tx == nil {
			tx, lock = s.pool, ""
		}
		row, now, err := readTerm(ctx, tx, s.dialect.now, duty, lock)
		if err != nil {
			return err
		}
		if idle := time.Duration(now-row.LedAt) * time.Microsecond; row.Owner != "" && idle.Abs() < vacantAfter {
			return fmt.Errorf("%w: %q was done %v ago in term %d", timeout.ErrLed, duty, idle, row.Term)
		}
		return nil
	}
}

// termRow is who has a duty. Its term is that of the election, plus the base.
type termRow struct {
	Duty       string
	Term, Base int64
	Owner      string
	LedAt      int64 // when the leader was last at work
}

func (r *termRow) fence() dlock.Fence { return dlock.Fence{Token: uint64(r.Term), Owner: r.Owner} }

// follow makes r the row of a term that is later than that of r. If its number is not, the
// service that counts the terms has lost its data, or is another one than before, and is
// counted on from here.
func (r *termRow) follow(f dlock.Fence) {
	next := r.Base + int64(f.Token)
	if next < r.Term || next == r.Term && r.Owner != f.Owner {
		next = r.Term + 1
	}
	r.Term, r.Base, r.Owner = next, next-int64(f.Token), f.Owner
}

// lockedTerm reads the row of a duty, for which there is one afterwards, and keeps it until the
// transaction ends.
func (s *Store) lockedTerm(db *gorm.DB, duty string) (termRow, error) {
	ctx, tx := db.Statement.Context, db.Statement.ConnPool
	row, _, err := readTerm(ctx, tx, s.dialect.now, duty, s.dialect.forUpdate)
	if err != nil || row.Owner != "" {
		return row, err
	}
	_, err = tx.ExecContext(ctx, s.dialect.insertNew+" INTO terms (duty, term, base, owner, led_at) VALUES (?, 0, 0, '', 0)", duty)
	if err != nil {
		return row, err
	}
	row, _, err = readTerm(ctx, tx, s.dialect.now, duty, s.dialect.forUpdate)
	return row, err
}

// readTerm reads the row of a duty, and the time. A duty that nobody has ever had has an empty one.
func readTerm(ctx context.Context, tx timeout.Tx, clock, duty, suffix string) (row termRow, now int64, err error) {
	row.Duty = duty
	rows, err := tx.QueryContext(ctx, "SELECT term, base, owner, led_at, "+clock+" FROM terms WHERE duty = ?"+suffix, duty)
	if err != nil {
		return row, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&row.Term, &row.Base, &row.Owner, &row.LedAt, &now); err != nil {
			return row, 0, err
		}
	}
	return row, now, rows.Err()
}
