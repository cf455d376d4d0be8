package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/timeout"
)

// PurgeAnswers deletes up to limit answers that are older than age by the database's clock, the oldest first, and
// returns how many. It blocks until that is done or ctx ends, and deletes a few hundred at a time, so that nobody waits
// long for it. The leader token begins each of these transactions; with a nil one several may delete at once. After an
// error, deleted answers stay deleted.
func (s *Store) PurgeAnswers(ctx context.Context, token timeout.LeaderToken, age time.Duration, limit int) (n int64, err error) {
	for n < int64(limit) {
		some := min(maxRows, int64(limit)-n)
		var deleted int64
		err := s.inTx(ctx, func(tx *gorm.DB) error {
			if err := token.Check(ctx, tx.Statement.ConnPool); err != nil {
				return err
			}
			r := tx.Exec(s.dialect.purge, age.Microseconds(), some)
			deleted = r.RowsAffected
			return r.Error
		})
		if err != nil {
			return n, err
		}
		if n += deleted; deleted < some {
			break
		}
	}
	return n, nil
}
