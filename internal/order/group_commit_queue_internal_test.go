package order

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock"
)

// Batches of a SKU wait for its transaction and share the next one, also with a basket of that SKU and another. No
// batch overtakes a basket.
func TestTransactionsHaveSKUsOfTheirOwn(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		began := time.Now()
		commit(t.Context(), selling("a", stock.RowLock))
		<-s.begun
		commit(t.Context(), selling("b", stock.RowLock))
		<-s.begun
		basket := selling("a", stock.RowLock)
		basket.Claims = append(basket.Claims, stock.Claim{SKU: "b", Update: stock.RowLock})
		commit(t.Context(), basket)
		commit(t.Context(), selling("a", stock.RowLock))
		commit(t.Context(), selling("b", stock.RowLock))
		s.end <- nil
		synctest.Wait()
		select {
		case got := <-s.begun:
			t.Fatalf("%v goes past the basket", got[0].Claims)
		default:
		}
		s.end <- nil
		if got := <-s.begun; len(got) != 3 || got[0] != basket {
			t.Errorf("%d batches in the next transaction, want the basket and two", len(got))
		}
		commit(t.Context(), selling("a", stock.RowLock))
		if time.Since(began) != 0 {
			t.Errorf("they waited %v", time.Since(began))
		}
		if got := <-s.begun; len(got) != 1 || time.Since(began) != longTransaction {
			t.Errorf("%d batches while a transaction takes long, after %v", len(got), time.Since(began))
		}
		s.end <- nil
		s.end <- nil
	})
}

// A batch that leaves the queue keeps back nobody who waited behind it.
func TestNobodyWaitsBehindABatchThatLeft(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		began := time.Now()
		commit(t.Context(), selling("b", stock.RowLock))
		<-s.begun
		basket := selling("a", stock.RowLock)
		basket.Claims = append(basket.Claims, stock.Claim{SKU: "b", Update: stock.RowLock})
		ctx, leave := context.WithCancelCause(t.Context())
		gone := commit(ctx, basket)
		commit(t.Context(), selling("a", stock.RowLock))
		leave(errPoison)
		if err := <-gone; !errors.Is(err, errPoison) {
			t.Error(err)
		}
		if got := <-s.begun; len(got) != 1 || got[0].Claims[0].SKU != "a" || time.Since(began) != 0 {
			t.Errorf("%v after %v", got[0].Claims, time.Since(began))
		}
		s.end <- nil
		s.end <- nil
	})
}

// A batch whose time is over leaves the queue. One that is in a transaction has its outcome.
func TestBatchLeavesTheQueue(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		end := fill(t, s, commit)
		ctx, leave := context.WithCancelCause(t.Context())
		gone := commit(ctx, selling("b", stock.RowLock))
		stays := commit(t.Context(), selling("c", stock.RowLock))
		leave(errPoison)
		if err := <-gone; !errors.Is(err, errPoison) {
			t.Error(err)
		}
		end()
		got := <-s.begun
		if len(got) != 1 || got[0].Claims[0].SKU != "c" {
			t.Errorf("%v", got)
		}
		s.end <- nil
		if err := <-stays; err != nil {
			t.Error(err)
		}
		end = fill(t, s, commit)
		ctx, leave = context.WithCancelCause(t.Context())
		inside, beside := commit(ctx, selling("d", stock.RowLock)), commit(t.Context(), selling("e", stock.RowLock))
		end()
		<-s.begun
		leave(errPoison)
		s.end <- nil
		if err := errors.Join(<-inside, <-beside); err != nil {
			t.Errorf("it was committed: %v", err)
		}
	})
}
