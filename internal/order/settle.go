package order

import (
	"context"
	"fmt"

	"example.com/shop/internal/platform/party"
)

// Pay confirms a pending order. Paying a confirmed order again with the same payment returns it unchanged. Errors:
// [ErrInvalid], [ErrNotFound], [*StateError] with the present order, those of [idempotency], [stock.ErrBusy],
// [stock.ErrUnavailable].
func (s *Service) Pay(ctx context.Context, t Target, payment string) (Order, error) {
	if !party.ValidID(payment) {
		return Order{}, fmt.Errorf("%w: payment id %q", ErrInvalid, payment)
	}
	o, changed, err := s.store.Settle(ctx, t, Confirmed, payment)
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && (o.Status != Confirmed || o.PaymentID != payment) {
		return Order{}, &StateError{Order: o}
	}
	if !changed {
		return o, nil
	}
	s.publisher.Changed(o)
	return o, nil
}

// Cancel gives the units of a pending order back, and takes a queued one out of the queue. Cancelling a cancelled order
// returns it unchanged. Errors: [ErrNotFound], [*StateError] with the present order, those of [idempotency],
// [stock.ErrBusy], [stock.ErrUnavailable].
func (s *Service) Cancel(ctx context.Context, t Target) (Order, error) {
	o, changed, err := s.store.Settle(ctx, t, Cancelled, "")
	if err != nil {
		return Order{}, deadline(err)
	}
	if !changed && o.Status != Cancelled {
		return Order{}, &StateError{Order: o}
	}
	if !changed {
		return o, nil
	}
	for _, it := range o.Items {
		s.returned(it.SKU)
	}
	s.publisher.Changed(o)
	return o, nil
}
