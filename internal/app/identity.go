package app

import (
	"context"
	"iter"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/sqlstore"
)

// revokedTopic has the prefixes of revoked keys.
const revokedTopic = "keys.revoked"

// openIdentity returns what knows callers by their keys, or nil if authentication is disabled; and what keeps that
// up to date until its context ends.
func openIdentity(ctx context.Context, c Config, rdb redis.UniversalClient, store *sqlstore.Store, log *slog.Logger) (httpapi.Identity, func(context.Context) error, error) {
	if c.Auth == AuthNone {
		log.WarnContext(ctx, "authentication disabled: every client that reaches the listener may do everything", slog.String("listen", c.Listen))
		return nil, func(context.Context) error { return nil }, nil
	}
	known, err := identity.New(store, identity.Config{})
	if err != nil {
		return nil, nil, err
	}
	if rdb == nil { // no other process can notify this one
		return known, func(context.Context) error { return nil }, nil
	}
	bus, err := broadcast.New(rdb, func(err error) {
		log.WarnContext(ctx, "notification of revoked keys failed", slog.String("error", err.Error()))
	})
	if err != nil {
		return nil, nil, err
	}
	return known, func(ctx context.Context) error {
		watchRevocations(ctx, known, bus.Subscribe(ctx, revokedTopic), log)
		return nil
	}, nil
}

// watchRevocations makes known read a revoked key again, and all keys after a notice, until the events end. If a
// message is lost without a notice, the key is read again after [identity.Keep], as without messages.
func watchRevocations(ctx context.Context, known *identity.Service, events iter.Seq[broadcast.Event], log *slog.Logger) {
	for e := range events {
		switch {
		case e.Missed:
			known.ForgetAll()
		case identity.ValidPrefix(e.Payload):
			known.Forget(e.Payload)
			log.InfoContext(ctx, "a key was revoked", slog.String("key_prefix", e.Payload))
		}
	}
}

// NotifyRevoked notifies the instances that share a Redis that a key was revoked.
func NotifyRevoked(ctx context.Context, url, prefix string) error {
	rdb, err := redisclient.New(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	bus, err := broadcast.New(rdb, func(error) {})
	if err != nil {
		return err
	}
	return bus.Publish(ctx, revokedTopic, prefix)
}
