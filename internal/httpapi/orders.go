package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Orders is what the handler asks of orders; [*order.Service] provides it.
type Orders interface {
	Place(ctx context.Context, p order.Purchase) (order.Order, error)
	Order(ctx context.Context, id, owner string) (order.Order, error)
	Orders(ctx context.Context, f order.Filter) (order.Page, error)
	Events(ctx context.Context, id, owner string) ([]order.Event, error)
	Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error)
	Refuse(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error
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
	ctx, in := requestOf(ctx)
	o, err := a.Orders.Place(ctx, order.Purchase{
		Customer: r.Body.CustomerID, Items: items, Key: in.once, Prefer: in.prefer,
	})
	if errors.Is(err, order.ErrOutcomeUnknown) {
		return nil, &unconfirmedError{id: o.ID, error: err}
	}
	if unknown, ok := errors.AsType[*order.UnknownSKUError](err); ok {
		p := refuse(TypeUnknownSKU, problemOf(err).Detail)
		p.Errors, p.cause = placesOf(r.Body.Items, unknown), err
		return nil, p
	}
	if errors.Is(err, order.ErrInvalid) {
		if over := sums(r.Body.Items); len(over) > 0 {
			return nil, invalid(over...)
		}
	}
	if err != nil {
		return nil, err
	}
	return placed(o), nil
}

// sums returns where items of one SKU add up to more than an order may have of it.
func sums(items []NewItem) (over []Violation) {
	units := make(map[string]int64, len(items))
	for i, it := range items {
		if units[it.SKU] += it.Quantity; units[it.SKU] > stock.MaxQuantity && len(over) < maxViolations {
			over = append(over, Violation{
				Pointer: "#/items/" + strconv.Itoa(i) + "/quantity",
				Detail:  fmt.Sprintf("the items of this SKU add up to %d units by here, and may to %d", units[it.SKU], stock.MaxQuantity),
			})
		}
	}
	return over
}

// placesOf returns where items name a SKU that is unknown.
func placesOf(items []NewItem, unknown *order.UnknownSKUError) (all []Violation) {
	for i, it := range items {
		detail := "there is no SKU of this name"
		if slices.Contains(unknown.OtherShard, it.SKU) {
			detail = "the instances of another shard sell this SKU, and an order has SKUs of one shard"
		}
		if slices.Contains(unknown.SKUs, it.SKU) && len(all) < maxViolations {
			all = append(all, Violation{Pointer: "#/items/" + strconv.Itoa(i) + "/sku", Detail: detail})
		}
	}
	return all
}

// placed, paid, cancelled and extended are the answers to operations that succeeded.
func placed(o order.Order) PlaceOrderResponseObject {
	location := "/api/v1/orders/" + o.ID
	if o.Status == order.Queued {
		return PlaceOrder202JSONResponse{Body: orderBody(o), Headers: PlaceOrder202ResponseHeaders{Location: location}}
	}
	return PlaceOrder201JSONResponse{Body: orderBody(o), Headers: PlaceOrder201ResponseHeaders{Location: location}}
}

func paid(o order.Order) PayOrderResponseObject { return PayOrder200JSONResponse{Body: orderBody(o)} }

func cancelled(o order.Order) CancelOrderResponseObject {
	return CancelOrder200JSONResponse{Body: orderBody(o)}
}

func extended(o order.Order) ExtendOrderResponseObject {
	return ExtendOrder200JSONResponse{Body: orderBody(o)}
}

// target returns the order that a request wants to change.
func (in *requestState) target(id string) order.Target {
	return order.Target{ID: id, Owner: in.owner(), Key: in.once}
}

// GetOrder implements [StrictServerInterface].
func (a *api) GetOrder(ctx context.Context, r GetOrderRequestObject) (GetOrderResponseObject, error) {
	ctx, in := requestOf(ctx)
	o, err := a.Orders.Order(ctx, r.ID, in.owner())
	if err != nil {
		return nil, err
	}
	return tagged{body: orderBody(o), have: in.header.Values("If-None-Match")}, nil
}

// PayOrder implements [StrictServerInterface].
func (a *api) PayOrder(ctx context.Context, r PayOrderRequestObject) (PayOrderResponseObject, error) {
	ctx, in := requestOf(ctx)
	o, err := a.Orders.Pay(ctx, in.target(r.ID), r.Body.PaymentID)
	if err != nil {
		return nil, err
	}
	return paid(o), nil
}

// CancelOrder implements [StrictServerInterface].
func (a *api) CancelOrder(ctx context.Context, r CancelOrderRequestObject) (CancelOrderResponseObject, error) {
	ctx, in := requestOf(ctx)
	o, err := a.Orders.Cancel(ctx, in.target(r.ID))
	if err != nil {
		return nil, err
	}
	return cancelled(o), nil
}

// ExtendOrder implements [StrictServerInterface].
func (a *api) ExtendOrder(ctx context.Context, r ExtendOrderRequestObject) (ExtendOrderResponseObject, error) {
	ctx, in := requestOf(ctx)
	o, err := a.Orders.Extend(ctx, in.target(r.ID), time.Duration(r.Body.BySeconds)*time.Second)
	if errors.Is(err, order.ErrInvalid) {
		return nil, invalid(Violation{Pointer: "#/by_seconds", Detail: "the order would wait more than four times as long in all as orders usually may"})
	}
	if err != nil {
		return nil, err
	}
	return extended(o), nil
}

func orderBody(o order.Order) Order {
	items := make([]Item, len(o.Items))
	for i, it := range o.Items {
		items[i] = Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	return Order{
		ID: o.ID, CustomerID: o.CustomerID, Status: OrderStatus(o.Status), Items: items,
		ExpiresAt: o.ExpiresAt.UTC(), CreatedAt: o.CreatedAt.UTC(), Reason: Reason(o.Reason),
	}
}
