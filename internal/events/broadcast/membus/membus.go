// Package membus implements [broadcast.Bus] in the memory of one process, for an instance without Redis and for tests.
package membus

import (
	"context"
	"iter"
	"sync"

	"example.com/shop/internal/events/broadcast"
)

// room is how many messages a subscription holds that its subscriber has not received.
const room = 256

// Bus is a [broadcast.Bus]. The zero value is ready for use.
type Bus struct {
	mu     sync.Mutex
	topics map[string]map[*queue]struct{}
}

var _ broadcast.Bus = (*Bus)(nil)

// Publish implements [broadcast.Bus]. It never blocks or fails.
func (b *Bus) Publish(_ context.Context, topic, payload string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for q := range b.topics[topic] {
		q.put(payload)
	}
	return nil
}

// Subscribe implements [broadcast.Bus]. A subscription that is 256 messages behind misses all of them.
func (b *Bus) Subscribe(ctx context.Context, topic string) iter.Seq[broadcast.Event] {
	return func(yield func(broadcast.Event) bool) {
		q := &queue{missed: true, ready: make(chan struct{}, 1)}
		q.ready <- struct{}{}
		b.add(topic, q)
		defer b.remove(topic, q)
		for {
			select {
			case <-ctx.Done():
				return
			case <-q.ready:
			}
			for _, e := range q.take() {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
		}
	}
}

func (b *Bus) add(topic string, q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = make(map[string]map[*queue]struct{})
	}
	if b.topics[topic] == nil {
		b.topics[topic] = make(map[*queue]struct{})
	}
	b.topics[topic][q] = struct{}{}
}

func (b *Bus) remove(topic string, q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.topics[topic], q)
	if len(b.topics[topic]) == 0 {
		delete(b.topics, topic)
	}
}

// queue holds what a subscriber has not received.
type queue struct {
	ready chan struct{} // holds a value if there is something to take

	mu       sync.Mutex
	missed   bool // before the payloads
	payloads []string
}

func (q *queue) put(payload string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.payloads = append(q.payloads, payload)
	if len(q.payloads) > room {
		q.missed, q.payloads = true, nil
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) take() (events []broadcast.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.missed {
		events = append(events, broadcast.Event{Missed: true})
	}
	for _, p := range q.payloads {
		events = append(events, broadcast.Event{Payload: p})
	}
	q.missed, q.payloads = false, nil
	return events
}
