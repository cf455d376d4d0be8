package httpapi

import (
	"context"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/ratelimit"
)

// call is what the middleware finds out about a request, step by step, for those who come
// after it.
type call struct {
	rule    rule
	prefer  preference
	caller  identity.Caller
	key     string               // of idempotency; empty without one
	payload any                  // the body, parsed; nil without one
	once    *idempotency.Request // nil without a key
	rate    *ratelimit.Verdict   // nil if nobody was asked
}

type callKey struct{}

// callOf returns the call of a request's context. Outside of a request it is empty.
func callOf(ctx context.Context) *call {
	if in, ok := ctx.Value(callKey{}).(*call); ok {
		return in
	}
	return new(call)
}

// owner returns whose orders the caller may see and change; empty: everybody's.
func (in *call) owner() string {
	if in.caller.Admin {
		return ""
	}
	return in.caller.Customer
}
