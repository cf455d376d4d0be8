package app

import (
	"context"
	"iter"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/sqlstore"
)

// revokedTopic is where the prefixes of keys are notified that were revoked.
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
	bus, err := openBroadcast(rdb, log)
	if err != nil {
		return nil, nil, err
	}
	return known, func(ctx context.Context) error {
		watchRevocations(ctx, known, bus.Subscribe(ctx, revokedTopic), log)
		return nil
	}, nil
}

func openBroadcast(rdb redis.UniversalClient, log *slog.Logger) (broadcast.Bus, error) {
	if rdb == nil {
		return new(membus.Bus), nil
	}
	return redisbus.New(rdb, func(err error) { log.Warn("revoked keys", slog.String("error", err.Error())) })
}

// channelOf keeps shops on several databases of one server apart, as Redis does not.
func channelOf(rdb redis.UniversalClient) string {
	channel := "shop:broadcast:{all}"
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		channel += ":" + strconv.Itoa(one.Options().DB)
	}
	return channel
}

// watchRevocations makes the service look up revoked keys again, and all keys if a message may have been lost, until ctx ends.
// An undetected loss costs no more than a missing notification: a key is looked up again
// after [identity.Keep].
func watchRevocations(ctx context.Context, known *identity.Service, sub *broadcast.Subscription, log *slog.Logger) error {
	defer sub.Close()
	for {
		e, err := sub.Next(ctx)
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
	rdb, err := redisx.New(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	bus, err := redisbus.New(rdb, func(error) {})
	if err != nil {
		return err
	}
	if err := bus.Publish(revokedTopic, prefix); err != nil {
		return err
	}
	over, end := context.WithCancel(ctx)
	end()
	if err := bus.Run(over); err != nil { // which sends what is left
		return err
	}
	if bus.Stats().Failed > 0 {
		return fmt.Errorf("notify the instances: %w", failed)
	}
	return nil
}
