package blackbox_test

import (
	"context"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// fake does the same for every operation of the domain.
type fake struct {
	do func(ctx context.Context) (order.Order, error)
}

func (f fake) Place(ctx context.Context, _ order.Purchase) (order.Order, error) { return f.do(ctx) }

func (f fake) Order(ctx context.Context, _, _ string) (order.Order, error) { return f.do(ctx) }

func (f fake) Pay(ctx context.Context, _ order.Target, _ string) (order.Order, error) {
	return f.do(ctx)
}

func (f fake) Cancel(ctx context.Context, _ order.Target) (order.Order, error) { return f.do(ctx) }

func (f fake) Orders(ctx context.Context, _ order.Filter) (order.Page, error) {
	_, err := f.do(ctx)
	return order.Page{}, err
}

func (f fake) Events(ctx context.Context, _, _ string) ([]order.Event, error) {
	_, err := f.do(ctx)
	return nil, err
}

func (f fake) Answer(context.Context, *idempotency.Request) (idempotency.Answer, bool, error) {
	return idempotency.Answer{}, false, nil
}

func (f fake) Refuse(context.Context, *idempotency.Request, idempotency.Answer) error { return nil }

func (f fake) Extend(ctx context.Context, _ order.Target, _ time.Duration) (order.Order, error) {
	return f.do(ctx)
}

func (f fake) Create(ctx context.Context, _ stock.Level) (stock.Level, bool, error) {
	_, err := f.do(ctx)
	return someLevel, false, err
}

func (f fake) Level(ctx context.Context, _ string) (stock.Level, error) {
	_, err := f.do(ctx)
	return someLevel, err
}

func (f fake) Levels(ctx context.Context, _ string, _ int) ([]stock.Level, error) {
	_, err := f.do(ctx)
	return nil, err
}

func (f fake) Restock(ctx context.Context, _ string, _ int64, _ *idempotency.Request) (stock.Level, error) {
	_, err := f.do(ctx)
	return someLevel, err
}

func (f fake) AuditRecent(ctx context.Context, _ string) ([]stock.Audit, error) {
	_, err := f.do(ctx)
	return nil, err
}

func failing(err error) fake {
	return fake{func(context.Context) (order.Order, error) { return order.Order{}, err }}
}
