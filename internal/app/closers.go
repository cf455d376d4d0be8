package app

import (
	"context"
	"errors"
	"slices"
	"time"
)

// closers are what an instance has opened, in that order.
type closers []func(context.Context) error

func (c *closers) push(f func(context.Context) error) { *c = append(*c, f) }

// close closes everything in reverse order under one deadline, which the end of
// ctx does not shorten.
func (c *closers) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var errs []error
	for _, closer := range slices.Backward(*c) {
		errs = append(errs, closer(ctx))
	}
	return errors.Join(errs...)
}
