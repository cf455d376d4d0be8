package redisbus

import (
	"slices"
	"sync"

	"example.com/shop/internal/broadcast"
)

// outbox is what waits to be sent, in the order of its numbers.
type outbox struct {
	room int
	wake chan struct{} // has an element if there is something new

	mu      sync.Mutex
	origin  *broadcast.Origin
	queue   []frame
	dropped uint64
	closed  bool
}

// put numbers a message and queues it.
func (o *outbox) put(topic, payload string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return broadcast.ErrClosed
	}
	m, err := o.origin.Number(topic, payload)
	if err != nil {
		return err
	}
	if len(o.queue) >= o.room {
		o.dropped++ // its number is missing, which tells everybody
		return broadcast.ErrFull
	}
	o.queue = append(o.queue, frame{say, m})
	o.wakeUp()
	return nil
}

func (o *outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// tell queues a frame that tells the last number, unless the one before it does. So there is room for
// it: there are never more of them than messages, and one.
func (o *outbox) tell(k kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.queue); o.closed || n > 0 && (o.queue[n-1].kind == k || o.queue[n-1].kind == hello) {
		return
	}
	o.queue = append(o.queue, frame{k, broadcast.Message{ID: o.origin.Last()}})
	o.wakeUp()
}

// take returns the next batch to send.
func (o *outbox) take() []frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(maxBatch, len(o.queue))
	batch := o.queue[:n:n]
	o.queue = o.queue[n:]
	if len(o.queue) == 0 {
		o.queue = nil
	}
	return batch
}

// putBack returns a batch of which nothing was sent, so that it is taken again before what came later. So the outbox may
// have a batch more than there is room for.
func (o *outbox) putBack(batch []frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = slices.Concat(batch, o.queue)
	o.wakeUp()
}

// beat returns a frame that tells the last number, or none if that would be news: then
// there is something to take.
func (o *outbox) beat() []frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 {
		return nil
	}
	return []frame{{beat, broadcast.Message{ID: o.origin.Last()}}}
}

// close takes no more, and queues the goodbye.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.queue = append(o.queue, frame{bye, broadcast.Message{ID: o.origin.Last()}})
}

// stats returns how many numbers were given, and how many of them dropped.
func (o *outbox) stats() (published, dropped uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.origin.Last().Seq, o.dropped
}
