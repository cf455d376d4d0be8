// Package broadcast sends small messages to every subscriber in every process, at most once.
//
// A message lets a process act sooner. It never carries what must not be lost. A subscriber keeps its copy of something
// correct by one rule: at each notice that messages may be missing it drops its copy.
//
//	for e := range bus.Subscribe(ctx, "keys.revoked") {
//		if e.Missed {
//			copies.DropAll()
//		} else {
//			copies.Drop(e.Payload)
//		}
//	}
//
// # Guarantees
//
// Each is a case of the conformance tests in broadcasttest.
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
// # Backends
//
// membus is for one process, redisbus for several.
package broadcast

import (
	"context"
	"iter"
)

// Bus sends messages to the subscribers of a topic. It is safe for concurrent use.
type Bus interface {
	// Publish sends payload to all subscriptions of topic. It blocks for one round trip at most. After an error the
	// message may have been sent. Success does not say that any subscriber has received the message.
	Publish(ctx context.Context, topic, payload string) error

	// Subscribe returns the events of topic. A subscription begins with the loop over it, and ends with the loop or with
	// ctx. A backend opens lost connections again, so a subscription has no error. The loop is one subscription:
	// several loops over one sequence are several.
	Subscribe(ctx context.Context, topic string) iter.Seq[Event]
}

// Event is a message, or a notice that messages may be missing.
type Event struct {
	Missed  bool   // messages before this event may be missing; there is no payload
	Payload string // of the message
}
