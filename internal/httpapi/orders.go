package httpapi

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// Orders is what the handler asks of orders; [*order.Service] provides it.
type Orders interface {
	Place(ctx context.Context, p order.Purchase) (order.Order, error)
	Order(ctx context.Context, id, owner string) (order.Order, error)
	Orders(ctx context.Context, f order.Filter) (order.Page, error)
	Events(ctx context.Context, id, owner string) ([]order.Event, error)
	Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error)
	Pay(ctx context.Context, t order.Target, payment string) (order.Order, error)
	Cancel(ctx context.Context, t order.Target) (order.Order, error)
	Extend(ctx context.Context, t order.Target, by time.Duration) (order.Order, error)
}

var _ Orders = (*order.Service)(nil)

// unconfirmedError says which order may exist after an unknown outcome.
type unconfirmedError struct {
	id string
	error
}

func (e *unconfirmedError) Unwrap() error { return e.error }

// PlaceOrder implements [StrictServerInterface].
func (a *api) PlaceOrder(ctx context.Context, r PlaceOrderRequestObject) (PlaceOrderResponseObject, error) {
	items := make([]order.Item, len(r.Body.Items))
	for i, it := range r.Body.Items {
		items[i] = order.Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	o, err := a.Orders.Place(requestContext(ctx), order.Purchase{Customer: r.Body.CustomerID, Items: items})
	if errors.Is(err, order.ErrOutcomeUnknown) {
		return nil, &unconfirmedError{id: o.ID, error: err}
	}
	if err != nil {
		return nil, err
	}
	return PlaceOrder201JSONResponse{
		Body:    orderBody(o),
		Headers: PlaceOrder201ResponseHeaders{Location: "/api/v1/orders/" + o.ID},
	}, nil
}

// GetOrder implements [StrictServerInterface].
func (a *api) GetOrder(ctx context.Context, r GetOrderRequestObject) (GetOrderResponseObject, error) {
	o, err := a.Orders.Order(requestContext(ctx), r.ID, "")
	if err != nil {
		return nil, err
	}
	return GetOrder200JSONResponse(orderBody(o)), nil
}

// PayOrder implements [StrictServerInterface].
func (a *api) PayOrder(ctx context.Context, r PayOrderRequestObject) (PayOrderResponseObject, error) {
	o, err := a.Orders.Pay(requestContext(ctx), order.Target{ID: r.ID}, r.Body.PaymentID)
	if err != nil {
		return nil, err
	}
	return PayOrder200JSONResponse(orderBody(o)), nil
}

// CancelOrder implements [StrictServerInterface].
func (a *api) CancelOrder(ctx context.Context, r CancelOrderRequestObject) (CancelOrderResponseObject, error) {
	o, err := a.Orders.Cancel(requestContext(ctx), order.Target{ID: r.ID})
	if err != nil {
		return nil, err
	}
	return CancelOrder200JSONResponse(orderBody(o)), nil
}

// ExtendOrder implements [StrictServerInterface].
func (a *api) ExtendOrder(ctx context.Context, r ExtendOrderRequestObject) (ExtendOrderResponseObject, error) {
	o, err := a.Orders.Extend(requestContext(ctx), order.Target{ID: r.ID}, time.Duration(r.Body.BySeconds)*time.Second)
	if err != nil {
		return nil, err
	}
	return ExtendOrder200JSONResponse(orderBody(o)), nil
}

func orderBody(o order.Order) Order {
	items := make([]Item, len(o.Items))
	for i, it := range o.Items {
		items[i] = Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	return Order{
		ID: o.ID, CustomerID: o.CustomerID, Status: OrderStatus(o.Status), Items: items,
		ExpiresAt: o.ExpiresAt.UTC(), CreatedAt: o.CreatedAt.UTC(),
	}
}
