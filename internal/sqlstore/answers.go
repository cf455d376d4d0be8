package sqlstore

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// Answer implements [order.Store].
func (s *Store) Answer(context.Context, *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	return idempotency.Answer{}, false, nil
}

// Refuse implements [order.Store].
func (s *Store) Refuse(_ context.Context, _ *idempotency.Request, _ any, err error) error { return err }

// Enqueue implements [order.Store].
func (s *Store) Enqueue(context.Context, *order.Request, time.Duration) error {
	return errors.ErrUnsupported
}

// Reject implements [order.Store].
func (s *Store) Reject(context.Context, string, order.Reason) error { return errors.ErrUnsupported }

// Orders implements [order.Store].
func (s *Store) Orders(context.Context, order.Filter) (order.Page, error) {
	return order.Page{}, errors.ErrUnsupported
}

// Events implements [order.Store].
func (s *Store) Events(context.Context, string, string) ([]order.Event, error) {
	return nil, errors.ErrUnsupported
}

// PurgeAnswers deletes up to limit answers that are older than age, by the database's
// clock, and returns how many.
func (s *Store) PurgeAnswers(context.Context, time.Duration, int) (n int64, err error) {
	return 0, errors.ErrUnsupported
}
