package httpapi

import (
	"context"

	"example.com/shop/internal/order"
)

// ordersPage is the default number of orders on one page.
const ordersPage = 50

// ListOrders implements [StrictServerInterface]. The cursor of a page is the id of the order before the page. The API key
// decides whose orders a page has, whatever the cursor is.
func (a *api) ListOrders(ctx context.Context, r ListOrdersRequestObject) (ListOrdersResponseObject, error) {
	ctx, in := requestOf(ctx)
	f := order.Filter{
		Owner: in.owner(), Status: order.Status(given(r.Params.Status, "")), SKU: given(r.Params.SKU, ""),
		Before: given(r.Params.Cursor, ""), Limit: given(r.Params.Limit, ordersPage),
	}
	if r.Params.Cursor != nil && !order.ValidID(f.Before) {
		return nil, refuse(TypeMalformedRequest, "The query parameter cursor is not the next of a page.")
	}
	page, err := a.Orders.Orders(ctx, f)
	if err != nil {
		return nil, err
	}
	body := OrderPage{Orders: make([]Order, len(page.Orders))}
	for i, o := range page.Orders {
		body.Orders[i] = orderBody(o)
	}
	if page.Next != "" {
		body.Next = &page.Next
	}
	return ListOrders200JSONResponse(body), nil
}

// given returns the value of a parameter, or what it is when the request does not have it.
func given[T any](param *T, otherwise T) T {
	if param == nil {
		return otherwise
	}
	return *param
}

// cursorParam returns the cursor of a page, which may have its former name after.
func cursorParam(cursor, after *string) (string, error) {
	if cursor != nil && after != nil {
		return "", refuse(TypeMalformedRequest, "The query has both cursor and after, its former name.")
	}
	return given(cursor, given(after, "")), nil
}

// ListMovements implements [StrictServerInterface].
func (a *api) ListMovements(ctx context.Context, r ListMovementsRequestObject) (ListMovementsResponseObject, error) {
	ctx, in := requestOf(ctx)
	events, err := a.Orders.Events(ctx, r.ID, in.owner())
	if err != nil {
		return nil, err
	}
	body := MovementList{Movements: make([]Movement, len(events))}
	for i, e := range events {
		body.Movements[i] = Movement{
			Movement: MovementKind(e.Movement), SKU: e.SKU, Quantity: e.Quantity,
			Fence:    int64(e.Fence), // microseconds, see skuBody
			Instance: e.Instance, At: e.At.UTC(),
		}
	}
	return ListMovements200JSONResponse(body), nil
}

// ListStrategies implements [StrictServerInterface].
func (a *api) ListStrategies(context.Context, ListStrategiesRequestObject) (ListStrategiesResponseObject, error) {
	body := StrategyList{Strategies: []Strategy{}}
	if a.Strategies == nil {
		return ListStrategies200JSONResponse(body), nil
	}
	for _, name := range a.Strategies.Names() {
		st, err := a.Strategies.Lookup(name)
		body.Strategies = append(body.Strategies, Strategy{Name: name, Available: err == nil, Store: st.Store, StoreUnavailable: st.Unavailable() != nil})
	}
	return ListStrategies200JSONResponse(body), nil
}

// TraceOrder implements [StrictServerInterface].
func (a *api) TraceOrder(_ context.Context, r TraceOrderRequestObject) (TraceOrderResponseObject, error) {
	if a.Trace == nil {
		return TraceOrder200JSONResponse{Spans: []Span{}}, nil
	}
	return TraceOrder200JSONResponse(a.Trace(r.ID)), nil
}
