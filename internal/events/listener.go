package events

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// pace is the least time between two results of Next. Events in between are returned together.
	pace = 50 * time.Millisecond

	// batch limits the events of one result of Next.
	batch = 256

	// maxBehind bounds how long a listener from another instance waits until this instance has read as much, and a new
	// listener for the first read.
	maxBehind = 2 * time.Second
)

// Reason is the reason why a listener has to restart.
type Reason string

// The reasons.
const (
	Start  Reason = "start"  // it is new
	Gone   Reason = "gone"   // it has come back, and what it has not received may not be here
	Slow   Reason = "slow"   // it was so slow that events are not kept any more which it has not received
	Missed Reason = "missed" // this instance may have missed events
)

// Notice is one item of a stream: an event, or a reset.
type Notice struct {
	ID    string // of a listener that has received it and everything before
	Reset Reason // empty with an event
	Event Event
	Text  string // the event in JSON, in one line
}

// Listener receives the events of a feed that match its filter. It has no queue of its
// own: it reads from the ring of the feed. One goroutine at a time may use it.
type Listener struct {
	feed     *Feed
	filter   Filter
	audience *audience
	end      sync.Once

	next   uint64   // the number of the event to look at
	at     position // of the last event that it has passed
	misses uint64   // of the feed, when it began or started again
	reset  Reason   // to be sent next
	back   bool     // it has come back to at, and has no place in the ring yet
	until  time.Time
	pause  time.Time // when it is sent something again
}

// Listen adds a listener. lastID is the ID that was received last, from this or another
// instance, or empty. If the ring has all later events, the
// listener receives each of them once; otherwise it receives a reset first.
//
// It fails with ErrTooMany, or with ErrClosed after [Feed.Close].
func (f *Feed) Listen(filter Filter, lastID string) (*Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case f.listeners >= f.cfg.Listeners:
		f.stats.Refused++
		return nil, fmt.Errorf("%w: %d listen to this instance", ErrTooMany, f.listeners)
	case filter.Customer != "" && f.customers[filter.Customer] >= f.cfg.PerCustomer:
		f.stats.Refused++
		return nil, fmt.Errorf("%w: %d of this customer listen to this instance", ErrTooMany, f.cfg.PerCustomer)
	}
	f.listeners++
	if filter.Customer != "" {
		f.customers[filter.Customer]++
	}
	l := &Listener{
		feed: f, filter: filter, audience: f.audiences.join(filter.subject(), f.first, f.next),
		at: f.last, next: f.next, misses: f.misses, until: time.Now().Add(maxBehind),
	}
	switch at, ok := parsePosition(lastID); {
	case lastID == "":
		l.reset = Start
	case !ok:
		l.reset = Gone
	default:
		l.at, l.back = at, true
	}
	return l, nil
}

// Close ends the listener. Further calls have no effect.
func (l *Listener) Close() {
	l.end.Do(func() {
		f := l.feed
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listeners--
		f.audiences.leave(l.filter.subject())
		if c := l.filter.Customer; c != "" {
			if f.customers[c]--; f.customers[c] == 0 {
				delete(f.customers, c)
			}
		}
	})
}

// ID returns the current position for a reconnect. It advances also with
// events that do not match the filter.
func (l *Listener) ID() string {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	if l.reset == "" && !l.back && l.misses == l.feed.misses {
		l.skip()
	}
	return l.at.String()
}

// skip moves past all events if none matches the filter. It requires feed.mu.
func (l *Listener) skip() {
	if l.next >= l.audience.next {
		l.next, l.at = l.feed.next, l.feed.last
	}
}

// Next returns new events in order. It blocks until there is one, the feed is
// closed, or ctx ends: then it fails with ErrClosed or the cause of ctx. It returns events
// in quick succession together.
func (l *Listener) Next(ctx context.Context) ([]Notice, error) {
	if wait := time.Until(l.pause); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for {
		all, changed, err := l.take(time.Now())
		if len(all) > 0 {
			l.pause = time.Now().Add(pace)
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if err := l.wait(ctx, changed); err != nil {
			return nil, err
		}
	}
}

// wait waits until something has changed, or until a new listener reaches its maximum wait.
func (l *Listener) wait(ctx context.Context, changed <-chan struct{}) error {
	var over <-chan time.Time
	if l.back || l.reset == Start {
		t := time.NewTimer(time.Until(l.until))
		defer t.Stop()
		over = t.C
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// take returns the pending notices, or the channel to wait for.
func (l *Listener) take(now time.Time) (all []Notice, changed <-chan struct{}, err error) {
	f := l.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Looks++
	if unread := l.reset == Start && f.misses == 0 && now.Before(l.until); unread || l.back && !l.join(now) {
		if f.closed {
			return nil, nil, ErrClosed
		}
		return nil, f.audiences.back.news(), nil
	}
	if l.resetIfBehind(); l.reset != "" {
		all = append(all, Notice{ID: l.at.String(), Reset: l.reset})
		l.reset = ""
		f.stats.Resets++
	}
	l.skip()
	for l.next = max(l.next, f.first); l.next < f.next && len(all) < batch; l.next++ {
		e := f.at(l.next)
		l.at = e.at
		if f.decode(e) && l.filter.matches(e.event) {
			all = append(all, Notice{ID: e.at.String(), Event: e.event, Text: e.text})
		}
	}
	if l.next == f.next {
		l.skip()
	}
	if len(all) == 0 && f.closed {
		return nil, nil, ErrClosed
	}
	return all, l.audience.news(), nil
}

// resetIfBehind resets the listener if it has missed an event. It requires feed.mu.
func (l *Listener) resetIfBehind() {
	f := l.feed
	missed, slow := l.misses != f.misses, l.next < l.audience.lost
	switch {
	case l.reset != "":
	case missed:
		l.reset = Missed
	case slow:
		l.reset = Slow
	}
	if missed || slow || l.reset == Gone {
		l.at, l.next, l.misses = f.last, f.next, f.misses
	}
}

// join finds the position of a returning listener. It reports false if the listener must wait for the feed.
// It requires feed.mu.
func (l *Listener) join(now time.Time) bool {
	f := l.feed
	n, found, ahead := f.after(l.at)
	if !found && ahead && now.Before(l.until) {
		return false
	}
	l.back, l.misses = false, f.misses
	if l.next = n; !found {
		l.reset = Gone
	}
	return true
}
