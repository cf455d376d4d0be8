package app

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Time to close everything, and a service that may not respond. Orders whose callers have left may take all of it.
const (
	closeWithin        = 5 * time.Second
	closeServiceWithin = time.Second
)

// closers are what an instance has opened, in that order.
type closers []closer

type closer struct {
	name  string
	close func(context.Context) error
}

// push adds what close closes first. Its f ends with its context.
func (c *closers) push(name string, f func(context.Context) error) {
	*c = append(*c, closer{name, f})
}

// close closes everything in reverse order, whether or not ctx has ended. By then each request has its answer, and what a store still
// has of the instance expires. So a failure is logged, and is no failure of the instance.
func (c *closers) close(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	for _, each := range slices.Backward(*c) {
		if err := each.close(ctx); err != nil {
			log.WarnContext(ctx, "not closed in order; what it held expires", slog.String("part", each.name), slog.String("error", err.Error()))
		}
	}
}

// pushService is push for what asks a service that may not respond.
func (c *closers) pushService(name string, f func(context.Context) error) {
	c.push(name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, closeServiceWithin)
		defer cancel()
		return f(ctx)
	})
}

// pushClient is push for what frees connections, and waits for no reply.
func (c *closers) pushClient(name string, f func() error) {
	c.push(name, func(context.Context) error { return f() })
}
