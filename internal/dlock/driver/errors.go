package driver

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/dlock"
)

// InTime adds the end of ctx and its cause to err, which the caller has classified. The client reports the deadline
// of a context as an i/o timeout, and may do so before ctx itself is done.
func InTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(dlock.Ended(ctx), err)
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}
