package httpapi

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/httpapi/ratelimit"
)

// Rates limits the orders and extensions of a customer; [*ratelimit.Limiter] implements it.
type Rates interface {
	// Allow reports whether key may start one operation now. It fails only with the cause of
	// ctx.
	Allow(ctx context.Context, key string) (ratelimit.Verdict, error)
}

var _ Rates = (*ratelimit.Limiter)(nil)

// limitCustomer refuses an order in the name of another customer, and orders and extensions above the rate limit of a
// customer. It runs before the domain. Payments and cancellations are not limited: they finish an order, and at most
// one of them changes the order.
func (a *api) limitCustomer(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		ctx, in := requestOf(c)
		customer := ""
		switch r := request.(type) {
		case PlaceOrderRequestObject:
			customer = r.Body.CustomerID
			if owner := in.owner(); owner != "" && owner != customer {
				return nil, refuse(TypeForbidden, "The key is that of another customer than customer_id.")
			}
		case ExtendOrderRequestObject:
			customer = in.owner()
		}
		if customer == "" || a.Rates == nil {
			return next(c, request)
		}
		v, err := a.Rates.Allow(ctx, customer)
		if err != nil {
			return nil, err
		}
		in.rate = &v
		a.setRateLimitHeaders(c, false)
		if !v.Allowed {
			refused := refuse(TypeRateLimited, "The customer places or extends orders faster than one customer may. Nothing happened.")
			refused.after = v.RetryAfter
			return nil, refused
		}
		return next(c, request)
	}
}

// setRateLimitHeaders sets the remaining quota of the limits
// (draft-ietf-httpapi-ratelimit-headers). With atLimit it includes the limit of orders in flight.
func (a *api) setRateLimitHeaders(c *gin.Context, atLimit bool) {
	var limit, policy string
	if _, in := requestOf(c); in.rate != nil {
		v := in.rate
		policy = fmt.Sprintf(`"customer";q=%d`, v.Limit)
		limit = fmt.Sprintf(`"customer";r=%d;t=%s`, max(0, v.Remaining), wholeSeconds(v.ResetAfter, 0))
	}
	if atLimit && a.Permits != nil {
		s := a.Permits()
		if policy != "" {
			policy, limit = ", "+policy, ", "+limit
		}
		policy = fmt.Sprintf(`"orders";q=%d;qu="concurrent-requests"`, s.Permits) + policy
		limit = `"orders";r=0;t=` + wholeSeconds(s.Reset, 1) + limit
	}
	if policy != "" {
		c.Header("RateLimit-Policy", policy)
		c.Header("RateLimit", limit)
	}
}

// wholeSeconds returns d in seconds, rounded up, and at least least.
func wholeSeconds(d time.Duration, least int) string {
	return strconv.Itoa(max(least, int(math.Ceil(d.Seconds()))))
}
