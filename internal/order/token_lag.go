package order

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/stock"
)

// tokenLag tells whether an order that is refused for its fences can still get one that the row
// accepts. A stale fence is usual, and the next lease has a newer one. But a lease that was asked for
// after the row had accepted a fence, and is lower than that all the same, is of a service that has
// lost its data and counts anew. Each attempt makes it count; whether that is enough is a matter of
// how far it is.
type tokenLag struct {
	sku      string
	base     uint64
	accepted uint64    // by the row, at the latest refusal
	token    uint64    // the first one that was too low
	since    time.Time // when that was
}

// refused is told of each refusal, and returns the error to end with when the fences of the
// service will not have passed that of the row before the deadline of ctx.
func (c *tokenLag) refused(ctx context.Context, e *stock.FencedError) error {
	low := c.sku == e.Refused.SKU && c.base == e.Refused.Base && e.Base == c.base && e.Refused.Fence.Token < c.accepted
	if !low || e.Refused.Fence.Token < c.token {
		*c = tokenLag{e.Refused.SKU, e.Refused.Base, e.Accepted.Token, e.Refused.Fence.Token, time.Now()}
		return nil
	}
	c.accepted = e.Accepted.Token
	deadline, bounded := ctx.Deadline()
	gained, missing := e.Refused.Fence.Token-c.token, e.Accepted.Token-e.Refused.Fence.Token
	if !bounded || float64(missing)*time.Since(c.since).Seconds() <= float64(gained)*time.Until(deadline).Seconds() {
		return nil
	}
	return fmt.Errorf("%w: %w", stock.ErrFencesLost, e)
}
