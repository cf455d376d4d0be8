package httpapi

import (
	"context"

	"example.com/shop/internal/stock"
)

// RunAudit implements [StrictServerInterface].
func (a *api) RunAudit(ctx context.Context, r RunAuditRequestObject) (RunAuditResponseObject, error) {
	ctx, _ = requestOf(ctx)
	audits, err := a.Stock.AuditRecent(ctx, given(r.Params.SKU, ""))
	if err != nil {
		return nil, err
	}
	return RunAudit200JSONResponse(AuditOf(audits)), nil
}

// AuditOf returns audits as the API shows them.
func AuditOf(audits []stock.Audit) Audit {
	body := Audit{Ok: true, Skus: make([]AuditedSKU, len(audits))}
	for i, s := range audits {
		body.Ok = body.Ok && s.OK()
		body.Skus[i] = AuditedSKU{
			SKU: s.SKU, Strategy: s.Strategy, Stocked: s.Stocked, OnHand: s.OnHand, Reserved: s.Reserved,
			Sold: s.Sold, Accepted: s.Accepted(), Oversold: s.Oversold(), Undersold: s.Undersold(),
			RightTo: s.RightTo, Checked: s.Checked, LostUpdates: s.LostUpdates(), Overdue: s.Overdue, LedgerOk: s.LedgerOK(), Ok: s.OK(),
		}
		if s.RightTo > 0 {
			body.Skus[i].RightAt = &audits[i].RightAt
		}
	}
	return body
}
