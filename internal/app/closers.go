package app

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Time to close everything, and each part of it. A part that does not respond leaves time to the others.
const (
	closeWithin     = 5 * time.Second
	closeEachWithin = time.Second
)

// closers are what an instance has opened, in that order.
type closers []closer

type closer struct {
	name  string
	close func(context.Context) error
}

// push adds what close closes first.
func (c *closers) push(name string, f func(context.Context) error) {
	*c = append(*c, closer{name, f})
}

// close closes everything in reverse order, whether or not ctx has ended. By then each order has its answer, and what a store still
// has of the instance expires. So a failure is logged, and is no failure of the instance.
func (c *closers) close(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	for _, each := range slices.Backward(*c) {
		part, done := context.WithTimeout(ctx, closeEachWithin)
		if err := each.close(part); err != nil {
			log.WarnContext(ctx, "not closed in order; what it held expires", slog.String("part", each.name), slog.String("error", err.Error()))
		}
		done()
	}
}

// closing makes a function of one that needs no context.
func closing(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}
