package sqlstore

import (
	"context"
	"time"
)

// Fate is the outcome of one order of a SKU as the ledger has it, by the database's clock.
type Fate struct {
	OrderID    string
	ExpiresAt  time.Time
	ReleasedAt time.Time // when units were first released; zero: never
	Releases   int       // how often they were released
	Payments   int       // how often they were paid for
}

// Twice reports whether an order that can end once has ended more often.
func (f Fate) Twice() bool { return f.Releases+f.Payments > 1 }

// Fates returns what became of every order of one SKU, in the order of their
// expiry, and the time of reading. It blocks until the database has answered or
// ctx ends, and changes nothing.
func (s *Store) Fates(ctx context.Context, sku string) (now time.Time, fates []Fate, err error) {
	const query = `
SELECT o.id, MIN(o.expires_at) AS expires_at,
  COALESCE(MIN(CASE WHEN l.movement = 'RELEASE' THEN l.created_at END), 0) AS released_at,
  COALESCE(SUM(CASE WHEN l.movement = 'RELEASE' THEN 1 ELSE 0 END), 0) AS releases,
  COALESCE(SUM(CASE WHEN l.movement = 'CONFIRM' THEN 1 ELSE 0 END), 0) AS payments
FROM ledger l JOIN orders o ON o.id = l.order_id
WHERE l.sku = ?
GROUP BY o.id
ORDER BY expires_at, o.id`
	var rows []struct {
		ID         string
		ExpiresAt  int64
		ReleasedAt int64
		Releases   int
		Payments   int
	}
	var at int64
	err = s.retrying(ctx, func() (err error) {
		rows = nil
		if err = s.db.WithContext(ctx).Raw(query, sku).Scan(&rows).Error; err == nil {
			at, err = s.now(ctx)
		}
		return err
	})
	if err != nil {
		return time.Time{}, nil, err
	}
	fates = make([]Fate, len(rows))
	for i, r := range rows {
		fates[i] = Fate{OrderID: r.ID, ExpiresAt: time.UnixMicro(r.ExpiresAt).UTC(), Releases: r.Releases, Payments: r.Payments}
		if r.Releases > 0 {
			fates[i].ReleasedAt = time.UnixMicro(r.ReleasedAt).UTC()
		}
	}
	return time.UnixMicro(at).UTC(), fates, nil
}
