package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// lookUps counts the statements that look for answers, and keeps the first one waiting.
type lookUps struct {
	count atomic.Int64
	begin chan struct{}
}

func (l *lookUps) Name() string { return "lookups" }

func (l *lookUps) Initialize(db *gorm.DB) error {
	return db.Callback().Row().Before("gorm:row").Register("lookups", func(tx *gorm.DB) { l.see(tx) })
}

func (l *lookUps) see(tx *gorm.DB) {
	if strings.Contains(tx.Statement.SQL.String(), "FROM idempotency_keys") && l.count.Add(1) == 1 {
		<-l.begin
	}
}

// Those who look for the answer to a key at the same time share a statement, and each gets
// his own.
func TestLookUpsShareAStatement(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		const stored, askers = 40, 400
		seen := &lookUps{begin: make(chan struct{})}
		ctx, s := t.Context(), open(t, url, "one", seen)
		create(t, s, "a", "conditional", stored)
		batch := make([]*order.Request, stored)
		for i := range batch {
			batch[i] = request(1, "a")
			batch[i].Once = keyed("POST /", fmt.Sprint("key-", i), fmt.Sprint(i))
		}
		if err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), batch); err != nil {
			t.Fatal(err)
		}
		before := seen.count.Load()
		var group, begun sync.WaitGroup
		begun.Add(askers)
		for i := range askers {
			group.Go(func() {
				begun.Done()
				n := i % (2 * stored) // half of them are not stored
				payload := fmt.Sprint(n)
				if i%7 == 0 {
					payload = "other"
				}
				a, found, err := s.Answer(ctx, keyed("POST /", fmt.Sprint("key-", n), payload))
				switch {
				case n >= stored:
					if found || err != nil {
						t.Errorf("key %d was never used: %v, %v", n, found, err)
					}
				case payload == "other":
					if !errors.Is(err, idempotency.ErrReused) {
						t.Errorf("key %d with another payload: %v", n, err)
					}
				case err != nil || !found || a.Location != "/orders/"+batch[n].Order.ID:
					t.Errorf("key %d: %+v, %v, %v", n, a, found, err)
				}
			})
		}
		begun.Wait()
		close(seen.begin)
		group.Wait()
		if n := seen.count.Load() - before; n > askers/2 {
			t.Errorf("%d statements for %d who asked", n, askers)
		}
	})
}
