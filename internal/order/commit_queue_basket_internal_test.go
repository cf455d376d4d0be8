package order

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// lockedRow is a store of which a row is locked until free is closed.
type lockedRow struct {
	Store

	waits, free chan struct{}
}

// Commit implements [Store].
func (s *lockedRow) Commit(_ context.Context, batches ...*Batch) error {
	for _, b := range batches {
		select {
		case <-s.free:
			for _, r := range b.Requests {
				r.Answered = true
			}
		default:
			if !b.Bounded {
				return errors.New("the transaction waits for a row while it holds leases of several SKUs")
			}
			b.Err = ErrCommitAlone
		}
	}
	return nil
}

// AwaitRows implements [Store].
func (s *lockedRow) AwaitRows(ctx context.Context, _ []string) error {
	s.waits <- struct{}{}
	select {
	case <-s.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A basket holds no lease while it waits for a row: not that of the row's SKU, and not that of another SKU. When the row is free it asks
// for both again. If its caller leaves meanwhile, the order had no effect.
func TestBasketHoldsNoLeaseWhileItWaitsForARow(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		locks := memlock.New(memlock.Config{})
		store := &lockedRow{waits: make(chan struct{}), free: make(chan struct{})}
		s := NewService(store, stock.NewStrategies(stock.Lockers{Redis: locks}), Config{})
		st, err := stock.NewStrategies(stock.Lockers{Redis: locks}).Lookup("redis")
		if err != nil {
			t.Fatal(err)
		}
		var offers []stock.Offer
		for _, sku := range []string{"a", "b"} {
			o := stock.Offer{SKU: sku, Strategy: st}
			s.offers.known.Store(sku, o)
			offers = append(offers, o)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := &entry{
			Request: &Request{Order: Order{Items: []Item{{"a", 1}, {"b", 1}}}},
			ctx:     ctx, offers: offers, answer: make(chan error, 1),
		}
		answer := make(chan error, 1)
		go func() { answer <- s.queue.do(e) }()
		select {
		case <-store.waits:
		case err := <-answer:
			t.Fatalf("a basket with a locked row: %v", err)
		}
		for _, o := range offers {
			lease, err := locks.TryAcquire(t.Context(), stock.LockKey(o.SKU))
			if err != nil {
				t.Fatalf("the lease of %s while a basket waits for a row: %v", o.SKU, err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if leaves {
			cancel()
			if err := <-answer; !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("a basket whose caller left: %v", err)
			}
		}
		close(store.free)
		if !leaves {
			if err := <-answer; err != nil {
				t.Error(err)
			}
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if e.Answered == leaves {
			t.Errorf("the caller left: %v; stored: %v", leaves, e.Answered)
		}
	}
}
