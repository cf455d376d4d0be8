package order

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/stock"
)

// tokenLag decides whether an order that was refused for a stale fencing token can still get a token that the row
// accepts. A stale token is usual, and the next lease has a newer one. If a lease was requested after the row had
// accepted a token, and still has a lower one, the lock service has lost its counter. Each attempt raises the counter;
// the distance to the row's token decides whether that is enough.
type tokenLag struct {
	sku      string
	base     uint64
	accepted uint64    // by the row, at the latest refusal
	token    uint64    // the first one that was too low
	since    time.Time // when that was
}

// refused receives each refusal. It returns the error to end with if the fences of the service will not exceed that of
// the row before the deadline of ctx.
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
