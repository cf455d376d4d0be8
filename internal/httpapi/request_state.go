package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

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

type requestKey struct{}

// requestOf returns the state of the request of ctx, or an empty one outside of a request, and its own context. The generated code
// passes the gin.Context instead. gin reuses that for the next request, so detached work, such as the release of a lease, would read
// the values of another request.
func requestOf(ctx context.Context) (context.Context, *requestState) {
	if c, ok := ctx.(*gin.Context); ok {
		ctx = c.Request.Context()
	}
	in, ok := ctx.Value(requestKey{}).(*requestState)
	if !ok {
		in = new(requestState)
	}
	return ctx, in
}

// owner returns the customer whose orders the caller may read and change. It is empty for all customers.
func (in *requestState) owner() string {
	if in.caller.Admin {
		return ""
	}
	return in.caller.Customer
}
