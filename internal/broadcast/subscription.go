package broadcast

import (
	"context"
	"fmt"
	"sync"
)

// Subscription is a bounded queue of events. One goroutine at a time reads it.
//
// A reader that falls as many events behind as the queue has room for misses what comes
// then, until it has read all that it had. So it misses one span and not many, and is told
// of it at its place, with the number of messages.
type Subscription struct {
	fan      *Fanout
	patterns []string
	round    uint64 // the last delivery; guarded by fan.mu
	ready    chan struct{}

	mu    sync.Mutex
	queue ring
	over  *Missed // what did not fit, after the queue; nil if all did
	err   error   // why there will be no more events
}

// Next returns the next event. It blocks until there is one, ctx ends, or there will be
// none: then it fails with the cause of ctx, or with ErrClosed. A context that has ended
// comes before events, which stay; events come before the end of the Bus, but not
// before that of the Subscription by Close.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if ctx.Err() != nil {
			return Event{}, fmt.Errorf("broadcast: next event: %w", context.Cause(ctx))
		}
		e, ok, err := s.take()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
	}
}

// Ready returns a channel for those who wait for several things. After it gave a value, the
// next call of Next does not block. It gives one as long as there is something to read.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Len is how many events Next would return without blocking. It may be one more than
// the queue has room for: the notice of what did not fit.
func (s *Subscription) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return s.queue.n + 1
	}
	return s.queue.n
}

// Close ends the subscription. What was queued is discarded, and Next fails with
// ErrClosed, also where it blocks. Closing again changes nothing.
func (s *Subscription) Close() {
	s.fan.remove(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.over = ring{}, nil
	s.end()
}

// end requires mu.
func (s *Subscription) end() {
	s.err = ErrClosed
	s.signal()
}

// take returns the next event, if there is one.
func (s *Subscription) take() (Event, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	if s.queue.n > 0 {
		return s.queue.pop(), true, nil
	}
	if s.over != nil {
		e := Event{Missed: s.over}
		s.over = nil
		return e, true, nil
	}
	return Event{}, false, s.err
}

// deliver queues a message, and reports false if there was no room.
func (s *Subscription) deliver(m Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil && s.queue.n < s.fan.room {
		s.queue.push(Event{Message: m}, s.fan.room)
		s.signal()
		return true
	}
	s.overflow(Missed{Reason: Overflow, Count: 1})
	return false
}

// miss queues a notice.
func (s *Subscription) miss(m Missed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	if s.over != nil {
		s.overflow(m)
		return
	}
	if last := s.queue.last(); last != nil && last.Missed != nil {
		joined := last.Missed.join(m)
		last.Missed = &joined
		return
	}
	if s.queue.n < s.fan.room {
		s.queue.push(Event{Missed: &m}, s.fan.room)
		return
	}
	s.overflow(m)
}

// overflow requires mu.
func (s *Subscription) overflow(m Missed) {
	if s.over != nil {
		m = s.over.join(m)
	}
	s.over = &m
	s.signal()
}

// signal makes ready agree with what there is to read. It requires mu.
func (s *Subscription) signal() {
	if s.queue.n > 0 || s.over != nil || s.err != nil {
		select {
		case s.ready <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-s.ready:
	default:
	}
}

// ring is a queue that takes memory as it is needed, and keeps it.
type ring struct {
	buf     []Event
	head, n int
}

// push grows the ring up to room, which is more than n.
func (r *ring) push(e Event, room int) {
	if r.n == len(r.buf) {
		bigger := make([]Event, min(max(8, 2*r.n), room))
		for i := range r.n {
			bigger[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = bigger, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = e
	r.n++
}

// pop requires that n is not 0.
func (r *ring) pop() Event {
	e := r.buf[r.head]
	r.buf[r.head] = Event{} // or the ring would keep the payload
	r.head = (r.head + 1) % len(r.buf)
	r.n--
	return e
}

// last is the event that was pushed last; nil if there is none.
func (r *ring) last() *Event {
	if r.n == 0 {
		return nil
	}
	return &r.buf[(r.head+r.n-1)%len(r.buf)]
}
