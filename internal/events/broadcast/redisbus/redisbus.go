// Package redisbus implements [broadcast.Bus] on Redis pub/sub: standalone, behind Sentinel, or a Cluster.
//
// A topic is the channel "shop:broadcast:TOPIC". A database other than 0 adds its number, because Redis does not
// separate the channels of its databases. Nothing is stored.
//
// # Connections and failures
//
// Each subscription has its own connection, so a slow subscriber fills its own buffers only. Redis ends the connection
// when its buffer exceeds the client-output-buffer-limit of pubsub. redisbus replaces a connection that has ended, or on
// which nothing arrives for 4 s though it is pinged every second. Each confirmed subscription is a notice, because
// messages since the previous confirmation may be lost.
//
//	fault                                         notice follows
//	connection cut, server restarted or replaced  150 ms after the server can be reached (TestServerRestarts, TestFailover)
//	silent network                                4 s after the last arrival, if the server can be reached (TestSilentNetwork)
//	subscriber that blocks for too long           when the subscriber continues (TestBlockedSubscriberLosesItsConnection)
//	subscription refused                          never; the error is reported once (TestRefusedSubscription)
//
// The channels of go-redis hide that a connection was lost (TestChannelOfTheClientHidesLoss).
package redisbus

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/platform/redisx"
)

// callTime bounds a call of Publish.
const callTime = time.Second

// Bus is a [broadcast.Bus] on Redis.
type Bus struct {
	rdb     redis.UniversalClient
	prefix  string // of channels
	onError func(error)
}

var _ broadcast.Bus = (*Bus)(nil)

// New returns a bus on rdb, which stays the caller's. It refuses the clients that [redisx.Check] refuses. A subscription
// calls onError when its connection ends, and not again until the next one is open. onError must not block.
func New(rdb redis.UniversalClient, onError func(error)) (*Bus, error) {
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redisbus: %w", err)
	}
	b := &Bus{rdb: rdb, prefix: "shop:broadcast:", onError: onError}
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		b.prefix += strconv.Itoa(one.Options().DB) + ":"
	}
	return b, nil
}

// Publish implements [broadcast.Bus]. It takes 1 s at most.
func (b *Bus) Publish(ctx context.Context, topic, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	cmd := redis.NewCmd(ctx, "publish", b.prefix+topic, payload)
	cmd.SetFirstKeyPos(1)
	if err := b.rdb.Process(ctx, redisx.Once{Cmd: cmd}); err != nil { // a cluster client sends others again
		return fmt.Errorf("redisbus: publish to %s: %w", topic, err)
	}
	return nil
}

// Subscribe implements [broadcast.Bus].
func (b *Bus) Subscribe(ctx context.Context, topic string) iter.Seq[broadcast.Event] {
	return func(yield func(broadcast.Event) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		pass := func(e broadcast.Event) {
			if !yield(e) {
				stop()
			}
		}
		failing := false
		open := func() *redis.PubSub { return b.rdb.Subscribe(ctx, b.prefix+topic) }
		redisx.Subscribe(ctx, open, func(message any) {
			switch m := message.(type) {
			case *redis.Subscription:
				failing = false
				pass(broadcast.Event{Missed: true})
			case *redis.Message:
				pass(broadcast.Event{Payload: m.Payload})
			case error:
				if !failing {
					b.onError(fmt.Errorf("redisbus: subscribe to %s: %w", topic, m))
				}
				failing = true
			}
		})
	}
}
