package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/sqlstore"
)

// revokedTopic is where the prefixes of keys are told that were revoked.
const revokedTopic = "keys.revoked"

// openIdentity returns what knows callers by their keys, or nil if authentication is disabled; and what keeps that
// up to date until its context ends.
func openIdentity(ctx context.Context, c Config, rdb redis.UniversalClient, store *sqlstore.Store, log *slog.Logger) (httpapi.Identity, func(context.Context) error, error) {
	if c.Auth == AuthNone {
		log.WarnContext(ctx, "nobody is asked for a key: whoever reaches the listener may do everything", slog.String("listen", c.Listen))
		return nil, func(context.Context) error { return nil }, nil
	}
	known, err := identity.New(store, identity.Config{})
	if err != nil {
		return nil, nil, err
	}
	bus, err := openBroadcast(c, rdb, log)
	if err != nil {
		return nil, nil, err
	}
	sub, err := bus.Subscribe(revokedTopic)
	if err != nil {
		return nil, nil, err
	}
	return known, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return bus.Run(ctx) })
		g.Go(func() error { return watchRevocations(ctx, known, sub, log) })
		return g.Wait()
	}, nil
}

func openBroadcast(c Config, rdb redis.UniversalClient, log *slog.Logger) (broadcast.Bus, error) {
	if rdb == nil {
		return membus.New(nil, membus.Config{Instance: c.Instance})
	}
	return redisbus.New(rdb, redisbus.Config{Instance: c.Instance, Channel: channelOf(rdb), OnError: func(err error) {
		log.Warn("revoked keys", slog.String("error", err.Error()))
	}})
}

// channelOf keeps shops on several databases of one server apart, as Redis does not.
func channelOf(rdb redis.UniversalClient) string {
	channel := "shop:broadcast:{all}"
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		channel += ":" + strconv.Itoa(one.Options().DB)
	}
	return channel
}

// watchRevocations has keys looked up anew that were revoked, and all when that may not have been heard, until ctx ends.
// What is lost without a word costs no more than what is not told at all: a key is looked up again
// after [identity.Keep].
func watchRevocations(ctx context.Context, known *identity.Service, sub *broadcast.Subscription, log *slog.Logger) error {
	defer sub.Close()
	for {
		e, err := sub.Next(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, broadcast.ErrClosed):
			return nil
		case err != nil:
			return err
		case e.Missed != nil:
			known.ForgetAll()
		case identity.ValidPrefix(e.Message.Payload):
			known.Forget(e.Message.Payload)
			log.InfoContext(ctx, "a key was revoked", slog.String("key_prefix", e.Message.Payload))
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
	var failed error // of the goroutine that sends, for which Run waits
	bus, err := redisbus.New(rdb, redisbus.Config{Channel: channelOf(rdb), OnError: func(err error) { failed = err }})
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
		return fmt.Errorf("tell the instances: %w", failed)
	}
	return nil
}
