package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/sqlstore"
)

// acrossNodes is what does not hold when instances write to several nodes of a Galera cluster.
const acrossNodes = "two leaders may work at once"

// claimNode refuses to start on a node of a Galera cluster while another instance writes to another node, unless
// --allow-multi-writer is given. The claim is renewed until the instance has drained.
func claimNode(ctx context.Context, c Config, store *sqlstore.Store, closers *closers, log *slog.Logger) error {
	if !store.Galera() {
		return nil
	}
	err := store.ClaimNode(ctx, c.AllowMultiWriter)
	other, found := errors.AsType[*sqlstore.OtherNodeError](err)
	switch {
	case found && !c.AllowMultiWriter:
		return fmt.Errorf("--database: %w: give all instances the same node, or start with --allow-multi-writer (%s); "+
			"an instance that has crashed counts for %v", other, acrossNodes, sqlstore.NodeClaimTTL)
	case err != nil && !found:
		return err
	case c.AllowMultiWriter:
		log.WarnContext(ctx, "the database is a node of a Galera cluster; "+acrossNodes, slog.String("database", store.Address()))
	default:
		log.WarnContext(ctx, "the database is a node of a Galera cluster; all instances must write to this node",
			slog.String("database", store.Address()))
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { renewNode(ctx, store, log) })
	closers.push("claim of the database node", func(ctx context.Context) error {
		stop()
		renewing.Wait()
		return store.ReleaseNode(ctx)
	})
	return nil
}

// renewNode repeats the claim until ctx ends. It logs once per change that others write to another node, as after a
// failover of some instances.
func renewNode(ctx context.Context, store *sqlstore.Store, log *slog.Logger) {
	last := ""
	for backoff.Sleep(ctx, sqlstore.NodeClaimTTL/3) {
		text := ""
		if err := store.ClaimNode(ctx, true); err != nil {
			text = err.Error()
		}
		if text != "" && text != last && ctx.Err() == nil {
			log.WarnContext(ctx, "instances may write to several nodes of the Galera cluster; "+acrossNodes, slog.String("error", text))
		}
		last = text
	}
}
