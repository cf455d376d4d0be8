package main

import (
	"context"
	"log/slog"
	"time"

	"example.com/shop/internal/cluster"
)

// restoreEvery is how often the leader looks for permits that are not as many as they are set to.
const restoreEvery = time.Second

// begun returns c with what is configured already in place of its flags, so that an instance that starts
// does not make its flags those of all, or of its first orders.
func (n *node) begun(c serveConfig) serveConfig {
	c.permits, _ = n.permits.Get()
	c.orderTTL, _ = n.orderTTL.Get()
	return c
}

// restore gives the permits the number again that they are set to, until ctx ends: Redis may have lost it with its
// data, or has that of an instance that started when the configuration could not be read. The leader
// does, as what others know may be old.
func (n *node) restore(ctx context.Context, to live) {
	every := time.NewTicker(restoreEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		leads, err := n.lead.during(ctx, func(ctx context.Context, _ *cluster.Term) error {
			number, version := n.permits.Get()
			if version > 0 && n.settings.Stale() == nil && to.permitted() != number {
				n.log.InfoContext(ctx, "the permits have another number than they are set to", slog.Int("permits", number))
				return to.permits(ctx, number)
			}
			return nil
		})
		if leads && err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "the number of permits", slog.String("error", err.Error()))
		}
	}
}
