package httpapi

import (
	"context"
	"net/http"

	"example.com/shop/internal/httpapi/ratelimit"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/order"
)

// requestState is the state of a request that each middleware adds to for the
// next handlers.
type requestState struct {
	rule    rule
	header  http.Header
	prefer  order.Preference
	caller  identity.Caller
	key     string               // of idempotency; empty without one
	payload any                  // the body, parsed; nil without one
	once    *idempotency.Request // nil without a key
	rate    *ratelimit.Verdict   // nil if no rate limit was checked
}

type requestStateKey struct{}

// stateOf returns the state of the request with ctx, or an empty one outside of a request.
func stateOf(ctx context.Context) *requestState {
	if in, ok := ctx.Value(requestStateKey{}).(*requestState); ok {
		return in
	}
	return new(requestState)
}

// owner returns the customer whose orders the caller may read and change. It is empty for all customers.
func (in *requestState) owner() string {
	if in.caller.Admin {
		return ""
	}
	return in.caller.Customer
}
