package sqlstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/stock"
)

// A basket that waits for a place at one SKU has none at another.
func TestWaitForAPlaceKeepsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBulkheads(t.Context(), 1, nil)
		defer b.close()
		begun, end, basket := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go b.at(t.Context(), []string{"b"}, func(*places) error {
			close(begun)
			<-end
			return nil
		})
		<-begun
		go func() { basket <- b.at(t.Context(), []string{"a", "b"}, func(*places) error { return nil }) }()
		found := 0
		go func() { // finds out in its transaction that it needs both
			basket <- b.at(t.Context(), nil, func(p *places) error {
				found++
				return p.need("a", "b")
			})
		}()
		synctest.Wait()
		if err := b.at(t.Context(), []string{"a"}, func(*places) error { return nil }); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.at(ctx, []string{"b"}, func(*places) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second order of a SKU with one place: %v", err)
		}
		close(end)
		if err := errors.Join(<-basket, <-basket); err != nil || found != 2 {
			t.Errorf("the baskets: %v, and one ran %d times, want 2", err, found)
		}
		if len(b.bySKU) != 0 {
			t.Errorf("%d SKUs are kept that nobody uses", len(b.bySKU))
		}
	})
}

// A lock timeout of a basket has both of its rows probed. Only the one that is locked is refused, and only until it
// is free.
func TestProbeFindsTheLockedRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timeout := &mysql.MySQLError{Number: 1205}
		var locked atomic.Bool
		locked.Store(true)
		b := newBulkheads(t.Context(), 4, func(_ context.Context, sku string) error {
			if time.Sleep(2 * time.Second); sku == "bad" && locked.Load() {
				return timeout
			}
			return nil
		})
		defer b.close()
		do := func(skus ...string) error { return b.at(t.Context(), skus, func(*places) error { return nil }) }
		if err := b.at(t.Context(), []string{"bad", "good"}, func(*places) error { return timeout }); !errors.Is(err, timeout) {
			t.Error(err)
		}
		for range 10 {
			if err := do("good"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		for _, skus := range [][]string{{"bad"}, {"bad", "good"}} {
			began := time.Now()
			if err := do(skus...); !errors.Is(err, stock.ErrRowLocked) || !errors.Is(err, stock.ErrBusy) || time.Since(began) > 0 {
				t.Errorf("%q: %v after %v", skus, err, time.Since(began))
			}
		}
		locked.Store(false)
		time.Sleep(5 * time.Second)
		if err := do("bad", "good"); err != nil {
			t.Error(err)
		}
	})
}
