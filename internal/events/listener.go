package events

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

const (
	// pace is how often a listener gets what is new. What comes meanwhile comes in one go.
	pace = 50 * time.Millisecond

	// batch bounds how many events a listener gets in one go.
	batch = 256

	// patience is how long one who comes back with an id from another instance waits for this one
	// to hear as much.
	patience = 2 * time.Second
)

// Reason says why a listener is told to start anew.
type Reason string

// The reasons.
const (
	Start  Reason = "start"  // it is new
	Gone   Reason = "gone"   // it has come back, and what it has not heard may not be here
	Slow   Reason = "slow"   // it was so slow that events are not kept any more which it has not heard
	Missed Reason = "missed" // this instance may have missed events
)

// Notice is one item of a stream: an event, or the order to start anew.
type Notice struct {
	ID    string // of one who has heard it and everything before
	Reset Reason // empty with an event
	Event Event
	Text  string // the event in JSON, in one line
}

// Listener hears the events of a feed that its filter chooses. It costs the feed nothing but
// its place: it reads from the buffer of all. One goroutine at a time uses it.
type Listener struct {
	feed     *Feed
	filter   Filter
	audience *audience
	end      sync.Once

	next  uint64 // the number of the event to look at
	id    string
	reset Reason // to be told next

	back   position  // of one who comes back, until it has heard as much as this feed
	until  time.Time // when it is waited for no more
	joined uint64    // the number of the event up to which back counts
	then   string    // the id of one who had heard everything up to there
	came   bool      // it has come back since the feed has last begun anew
	doubt  uint64    // of the feed when it did
	pause  time.Time // when it is told something again
}

// Listen begins to listen. lastID is the id of what was heard last, here or at another
// instance, or empty. With an id of which everything that came later is kept here, the
// listener hears that, each event once, and nothing else; otherwise it is told first to start anew.
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
	l := &Listener{feed: f, filter: filter, audience: f.audiences.join(filter.subject(), f.first, f.next), id: f.where(), next: f.next}
	switch at, ok := parsePosition(lastID); {
	case lastID == "":
		l.reset = Start
	case !ok:
		l.reset = Gone
	default:
		l.back, l.id, l.until = at, lastID, time.Now().Add(patience)
	}
	return l, nil
}

// Close ends the listener. Closing again changes nothing.
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

// ID returns the id of one who has heard as much as this listener, which grows also with
// events that its filter does not choose.
func (l *Listener) ID() string {
	f := l.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.reset == "" && !l.doubtful() && l.next >= f.era {
		l.skip()
	}
	return l.id
}

// skip moves past all events, if none of them is for the listener. It requires feed.mu.
func (l *Listener) skip() {
	if l.back == nil && l.next >= l.audience.next {
		l.next, l.id = l.feed.next, l.feed.where() // which also tells of what is no event
	}
}

// lost returns the number of the event from which on the listener can receive everything. It requires feed.mu.
func (l *Listener) lost() uint64 {
	if l.back != nil {
		return l.feed.first // its id is made of every event
	}
	return max(l.audience.lost, l.feed.era)
}

// doubtful reports whether there were events of an origin that neither the id of the listener, when it came back, nor
// the feed knew, which it may not have heard where it was. Who read anew here has seen what became of
// them. It requires feed.mu.
func (l *Listener) doubtful() bool { return l.came && l.doubt != l.feed.doubt }

// Next returns what is new, in its order. It blocks until there is something, the feed is
// closed, or ctx ends: then it fails with ErrClosed or the cause of ctx. It gives what comes
// in quick succession in one go.
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

// wait waits until something has changed, or the patience of one who comes back is over.
func (l *Listener) wait(ctx context.Context, changed <-chan struct{}) error {
	var over <-chan time.Time
	if l.back != nil {
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

// take returns what there is, or what to wait for.
func (l *Listener) take(now time.Time) (all []Notice, changed <-chan struct{}, err error) {
	f := l.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Looks++
	if l.back != nil && l.joined == 0 && !l.join(now) {
		if f.closed {
			return nil, nil, ErrClosed
		}
		return nil, f.audiences.back.news(), nil
	}
	if l.doubtful() {
		l.reset = Gone
	}
	behind := l.next < l.lost()
	if l.reset == "" && behind {
		l.reset = Slow
		if l.next < f.era {
			l.reset = Missed
		}
	}
	if l.reset != "" {
		if l.reset != Start || behind {
			l.back, l.id, l.next = nil, f.where(), f.next
		}
		all = append(all, Notice{ID: l.id, Reset: l.reset})
		l.reset, l.came = "", false
		f.stats.Resets++
	}
	l.skip()
	l.next = max(l.next, f.first)
	for l.next < f.next && len(all) < batch {
		e := &f.ring[l.next%uint64(len(f.ring))]
		l.next++
		if l.pass(e) && f.read(e) && l.filter.matches(e.event) {
			all = append(all, Notice{ID: l.id, Event: e.event, Text: e.text})
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

// join finds the place of one who comes back. It reports false if that is to be waited for.
// It requires feed.mu.
func (l *Listener) join(now time.Time) bool {
	f := l.feed
	switch found := f.book.judge(l.back, now); {
	case found == present:
		l.back = maps.Clone(l.back)
		l.next, l.joined, l.then = f.first, f.next, f.where()
		l.came, l.doubt = true, f.doubt
		if l.joined == l.next {
			l.back = nil // there is nothing to catch up with
		}
		return true
	case found == ahead && now.Before(l.until):
		return false
	}
	l.reset = Gone
	return true
}

// pass moves past an event, and reports whether it is new. It requires feed.mu.
func (l *Listener) pass(e *entry) bool {
	if l.back == nil {
		l.id = e.id
		return true
	}
	fresh := e.seq > l.back[e.from]
	if fresh {
		l.back[e.from] = e.seq
		l.id = l.back.after(e.from)
	}
	if l.next == l.joined {
		l.back, l.id = nil, l.then
	}
	return fresh
}
