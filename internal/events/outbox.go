package events

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/platform/backoff"
)

const (
	// outboxSize is how many events wait for the log. Events that find no room are dropped, which all listeners are notified of.
	outboxSize = 4096

	// batchSize is how many events are appended in one call.
	batchSize = 64

	// collect is how long the first event waits for others. When nothing waits any more, the next call is made between later, as
	// each one wakes the feeds of all instances.
	collect = 5 * time.Millisecond
	between = 100 * time.Millisecond

	// appendPause is the pause between two attempts to append.
	appendPause = 200 * time.Millisecond
)

// outbox appends what one instance publishes to the log, each event once and in order.
type outbox struct {
	log     Log
	onError func(error)
	wake    chan struct{} // has room for one

	mu        sync.Mutex
	queue     []waiting
	lost      bool // an event was dropped after the last one in queue
	published uint64
	dropped   uint64
}

// waiting is an event that is not in the log yet.
type waiting struct {
	text string
	lost bool // an event before it was dropped
}

func newOutbox(log Log, onError func(error)) *outbox {
	return &outbox{log: log, onError: onError, wake: make(chan struct{}, 1)}
}

// put queues an event, or drops it if there is no room.
func (o *outbox) put(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.published++
	if len(o.queue) == outboxSize {
		o.lost = true
		o.dropped++
		return
	}
	o.queue = append(o.queue, waiting{text, o.lost})
	o.lost = false
	signal(o.wake)
}

// signal wakes the goroutine that receives from c.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns the next events, whether some were dropped before them, and whether there is more to say.
func (o *outbox) take() (texts []string, lost, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for ; n < min(len(o.queue), batchSize) && (n == 0 || !o.queue[n].lost); n++ {
		lost = lost || o.queue[n].lost
		texts = append(texts, o.queue[n].text)
	}
	o.queue = slices.Delete(o.queue, 0, n)
	if n == 0 { // nothing follows what was dropped
		lost, o.lost = o.lost, false
	}
	return texts, lost, len(o.queue) > 0 || o.lost
}

// run appends until ctx ends, and then appends the remaining events for up to lastTime. Then it drops the rest.
func (o *outbox) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, cancel) })()
	b := Batch{Writer: rand.Text()}
	var last time.Time // that something was appended
	for {
		over := ctx.Err() != nil // before the look: what was put before the end is seen by it
		var more bool
		if b.Texts, b.Lost, more = o.take(); len(b.Texts) > 0 || b.Lost {
			b.Number++
			if !o.append(work, b) {
				o.drop(len(b.Texts))
				return
			}
			last = time.Now()
			if more {
				continue
			}
		} else if over {
			return
		}
		select {
		case <-o.wake:
			select {
			case <-time.After(max(collect, between-time.Since(last))):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
}

// drop counts what could not be appended: n events, and those that wait.
func (o *outbox) drop(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n += len(o.queue)
	o.dropped += uint64(n)
	o.onError(fmt.Errorf("events: %d were not published when the instance stopped", n))
}

// append appends b. It repeats the call until the log has answered, or reports false when ctx ends.
func (o *outbox) append(ctx context.Context, b Batch) (done bool) {
	for failed := false; ; failed = true {
		err := o.log.Append(ctx, b)
		if err == nil {
			return true
		}
		if !failed && ctx.Err() == nil {
			o.onError(fmt.Errorf("events: %w", err))
		}
		if !backoff.Sleep(ctx, appendPause) {
			return false
		}
	}
}
