// Package broadcast sends small messages to every subscriber in every process, at most once, by Redis pub/sub:
// standalone, behind Sentinel, or a Cluster.
//
// A message lets a process act sooner. It never carries what must not be lost. A subscriber keeps its copy of something
// correct by one rule: at each notice that messages may be missing it drops its copy.
//
//	for e := range bus.Subscribe(ctx, "keys.revoked") {
//		if e.Missed { // also the first event: subscribe, and then read
//			copies.DropAll()
//		} else {
//			copies.Drop(e.Payload)
//		}
//	}
//
// # Guarantees
//
//   - Every subscription of a topic receives its messages, also those of its own process (EverySubscriptionReceives,
//     TopicsAreSeparate), unchanged (PayloadsAreUnchanged).
//   - A subscription receives the messages of one publisher in order, and none twice (OrderPerPublisher).
//   - The first event of a subscription is a notice. What is published after this notice arrives, or another notice
//     follows (FirstEventIsANotice).
//   - A notice follows the messages that a broken connection has lost (LossIsNotified).
//   - A slow subscriber delays neither publishers nor other subscribers. A notice follows the messages that it has
//     missed (SlowSubscriberDelaysNobody).
//   - A subscription ends with its context or its loop (SubscriptionEnds).
//
// # Not guaranteed
//
// Delivery is not guaranteed. A notice comes when the connection is open again, so a copy is stale during an outage. A
// message is lost without any notice if its server accepts it and does not pass it on, as a replaced master
// does. A subscriber that must not rely on old data therefore reads it again from time to time.
//
// # Connections and failures
//
// A topic is the channel "shop:broadcast:TOPIC". A database other than 0 adds its number, because Redis does not
// separate the channels of its databases. Nothing is stored.
//
// Each subscription has its own connection, so a slow subscriber fills its own buffers only. Redis ends the connection
// when its buffer exceeds the client-output-buffer-limit of pubsub. A connection is replaced that has ended, or on
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
package broadcast

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// callTime bounds a call of Publish.
const callTime = time.Second

// Bus sends messages to the subscribers of a topic. It is safe for concurrent use.
type Bus struct {
	rdb     redis.UniversalClient
	prefix  string // of channels
	onError func(error)
}

// Event is a message, or a notice that messages may be missing.
type Event struct {
	Missed  bool   // messages before this event may be missing; there is no payload
	Payload string // of the message
}

// New returns a bus on rdb, which stays the caller's. It refuses the clients that [redisx.Check] refuses. A subscription
// calls onError when its connection ends, and not again until the next one is open. onError must not block.
func New(rdb redis.UniversalClient, onError func(error)) (*Bus, error) {
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("broadcast: %w", err)
	}
	b := &Bus{rdb: rdb, prefix: "shop:broadcast:", onError: onError}
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		b.prefix += strconv.Itoa(one.Options().DB) + ":"
	}
	return b, nil
}

// Publish sends payload to all subscriptions of topic. It blocks for one round trip, 1 s at most. After an error the
// message may have been sent. Success does not say that any subscriber has received the message.
func (b *Bus) Publish(ctx context.Context, topic, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	cmd := redis.NewCmd(ctx, "publish", b.prefix+topic, payload)
	cmd.SetFirstKeyPos(1)
	if err := b.rdb.Process(ctx, redisx.Once{Cmd: cmd}); err != nil { // a cluster client sends others again
		return fmt.Errorf("broadcast: publish to %s: %w", topic, err)
	}
	return nil
}

// Subscribe returns the events of topic. A subscription begins with the loop over it, and ends with the loop or with
// ctx. Lost connections are opened again, so a subscription has no error. The loop is one subscription: several loops
// over one sequence are several.
func (b *Bus) Subscribe(ctx context.Context, topic string) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		pass := func(e Event) {
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
				pass(Event{Missed: true})
			case *redis.Message:
				pass(Event{Payload: m.Payload})
			case error:
				if !failing {
					b.onError(fmt.Errorf("broadcast: subscribe to %s: %w", topic, m))
				}
				failing = true
			}
		})
	}
}
