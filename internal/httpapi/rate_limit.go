package httpapi

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/ratelimit"
)

// Rates says how often a customer may place orders; [*ratelimit.Limiter] provides it.
type Rates interface {
	// Allow asks whether key may begin one operation now. It fails only with the cause of
	// ctx's end.
	Allow(ctx context.Context, key string) (ratelimit.Verdict, error)
}

var _ Rates = (*ratelimit.Limiter)(nil)

// limitRate refuses orders and extensions of customers who ask for too many. It comes before anything that
// they cost. Payments and cancellations are not limited: they end what is begun, and each order has one at most
// that changes and stores something.
func (a *api) limitRate(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		in, customer := callOf(c.Request.Context()), ""
		switch r := request.(type) {
		case PlaceOrderRequestObject:
			customer = r.Body.CustomerID
		case ExtendOrderRequestObject:
			customer = in.owner()
		}
		if customer == "" || a.Rates == nil {
			return next(c, request)
		}
		v, err := a.Rates.Allow(c.Request.Context(), customer)
		if err != nil {
			return nil, err
		}
		in.rate = &v
		a.sayLimits(c, false)
		if !v.Allowed {
			late := refuse(TypeRateLimited, "The customer places or extends orders faster than one customer may. Nothing happened.")
			late.after = v.RetryAfter
			return nil, late
		}
		return next(c, request)
	}
}

// sayLimits says in the answer what is left of the limits
// (draft-ietf-httpapi-ratelimit-headers).
func (a *api) sayLimits(c *gin.Context, saturated bool) {
	var limit, policy string
	if v := callOf(c.Request.Context()).rate; v != nil {
		policy = fmt.Sprintf(`"customer";q=%d`, v.Limit)
		limit = fmt.Sprintf(`"customer";r=%d;t=%s`, max(0, v.Remaining), wholeSeconds(v.ResetAfter, 0))
	}
	if saturated && a.Permits != nil {
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
