package httpapi

import (
	"context"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/stock"
)

// pageSize is the largest and the default number of SKUs on one page.
const pageSize = 100

// Stock has the operations on SKUs; [*stock.Service] implements it.
type Stock interface {
	Create(ctx context.Context, l stock.Level) (level stock.Level, created bool, err error)
	Level(ctx context.Context, sku string) (stock.Level, error)
	Levels(ctx context.Context, after string, limit int) ([]stock.Level, error)
	Restock(ctx context.Context, sku string, quantity int64, once *idempotency.Request) (stock.Level, error)
	AuditRecent(ctx context.Context, sku string) ([]stock.Audit, error)
}

var _ Stock = (*stock.Service)(nil)

// ListSKUs implements [StrictServerInterface].
func (a *api) ListSKUs(ctx context.Context, r ListSKUsRequestObject) (ListSKUsResponseObject, error) {
	after, err := cursorParam(r.Params.Cursor, r.Params.After)
	if err != nil {
		return nil, err
	}
	limit := given(r.Params.Limit, pageSize)
	ctx, _ = requestOf(ctx)
	levels, err := a.Stock.Levels(ctx, after, limit+1) // one more, to detect a next page
	if err != nil {
		return nil, err
	}
	page := SKUPage{Skus: make([]SKU, 0, limit)}
	if len(levels) > limit {
		levels = levels[:limit]
		page.Next = &levels[limit-1].SKU
	}
	for _, l := range levels {
		page.Skus = append(page.Skus, skuBody(l))
	}
	return ListSKUs200JSONResponse(page), nil
}

// GetSKU implements [StrictServerInterface].
func (a *api) GetSKU(ctx context.Context, r GetSKURequestObject) (GetSKUResponseObject, error) {
	ctx, in := requestOf(ctx)
	l, err := a.Stock.Level(ctx, r.SKU)
	if err != nil {
		return nil, err
	}
	return tagged{body: skuBody(l), have: in.header.Values("If-None-Match")}, nil
}

// CreateSKU implements [StrictServerInterface].
func (a *api) CreateSKU(ctx context.Context, r CreateSKURequestObject) (CreateSKUResponseObject, error) {
	ctx, _ = requestOf(ctx)
	l, created, err := a.Stock.Create(ctx, stock.Level{SKU: r.SKU, Strategy: r.Body.Strategy, OnHand: r.Body.OnHand, Limit: r.Body.PurchaseLimit})
	if err != nil {
		return nil, err
	}
	if created {
		return CreateSKU201JSONResponse(skuBody(l)), nil
	}
	return CreateSKU200JSONResponse(skuBody(l)), nil
}

// RestockSKU implements [StrictServerInterface].
func (a *api) RestockSKU(ctx context.Context, r RestockSKURequestObject) (RestockSKUResponseObject, error) {
	ctx, in := requestOf(ctx)
	l, err := a.Stock.Restock(ctx, r.SKU, r.Body.Quantity, in.once)
	if err != nil {
		return nil, err
	}
	return restocked(l), nil
}

// restocked is the response to a restock.
func restocked(l stock.Level) RestockSKUResponseObject {
	return RestockSKU200JSONResponse{Body: skuBody(l)}
}

func skuBody(l stock.Level) SKU {
	return SKU{
		SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Reserved: l.Reserved, Available: l.Available(),
		Version: l.Version, Fence: int64(l.Fence.Token), // microseconds since 1970: 2^53 is reached in the year 2255
		PurchaseLimit: l.Limit,
	}
}
