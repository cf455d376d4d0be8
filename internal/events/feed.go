package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/broadcast"
)

// Why there is no [Listener].
var (
	// ErrTooMany says that as many listen as may.
	ErrTooMany = errors.New("events: too many listeners")

	// ErrClosed says that the feed has ended or is about to.
	ErrClosed = errors.New("events: the feed is closed")
)

// FeedConfig is the configuration of a [Feed]. Its zero value is the default.
type FeedConfig struct {
	// Buffer is how many of the latest events are kept for those who are behind or come
	// back. 0 means 8,192, which is some 5 MB, and 8 MB while somebody listens to three instances. Each further one adds
	// 0.4 MB to that, as the id of every event names it.
	Buffer int

	// Listeners is how many may listen at once; 0 means 2,000.
	Listeners int

	// PerCustomer is how many of them may be of one customer; 0 means 20.
	PerCustomer int
}

// Validate returns what is wrong with the configuration, or nil.
func (c FeedConfig) Validate() error {
	if c.Buffer < 0 || c.Listeners < 0 || c.PerCustomer < 0 {
		return fmt.Errorf("events: a buffer of %d, %d listeners, %d of one customer: give none that is negative", c.Buffer, c.Listeners, c.PerCustomer)
	}
	return nil
}

// Stats are the counters of one feed. Those that are not states only grow.
type Stats struct {
	Listeners int
	Kept      int // events in the buffer

	Heard   uint64 // events that arrived
	Foreign uint64 // messages that are none, as far as somebody listened
	Missed  uint64 // how often events may have been missed, which all listeners are told
	Resets  uint64 // how often a listener was told so, or that it was too slow or came back too late
	Refused uint64 // listeners for whom there was no room
	Looks   uint64 // how often a listener looked for something new
}

// Feed is what one instance has of the events of all. It is safe for concurrent use.
type Feed struct {
	cfg FeedConfig
	bus broadcast.Bus
	sub *broadcast.Subscription

	mu        sync.Mutex
	ring      []entry // of events first to next-1, event n at n % len
	first     uint64
	next      uint64
	era       uint64 // the number of the latest miss: nothing before it counts
	book      book
	doubt     uint64 // how often an origin appeared that had published what was not received
	from      origin // of what was received last
	id        string // of a listener that has received everything; empty when it is to be written again
	audiences audiences
	closed    bool
	listeners int
	customers map[string]int
	stats     Stats
}

// entry is an event in the ring. While nobody listens it is kept as it came: most are never
// told to anybody, as only those who come back soon ask for what was before them.
type entry struct {
	message broadcast.Message // empty when it has been read
	event   Event
	from    origin
	known   *known // that origin
	seq     uint64
	text    string // the event in JSON; empty if the message was none
	id      string // of one who has heard it and all before, if somebody listened when it came
}

// NewFeed subscribes to the events on bus. Nothing is heard before Run. It fails if the
// configuration is not valid or the bus has ended.
func NewFeed(bus broadcast.Bus, c FeedConfig) (*Feed, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Buffer, c.Listeners, c.PerCustomer = cmp.Or(c.Buffer, 8192), cmp.Or(c.Listeners, 2000), cmp.Or(c.PerCustomer, 20)
	sub, err := bus.Subscribe(topics + "*")
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return &Feed{
		cfg: c, bus: bus, sub: sub, ring: make([]entry, c.Buffer), book: book{by: make(map[origin]*known)},
		audiences: audiences{of: make(map[subject]*audience)}, customers: make(map[string]int),
	}, nil
}

// Run hears events until ctx or the bus ends. It is called once. At its end all listeners end.
func (f *Feed) Run(ctx context.Context) error {
	defer f.Close()
	defer f.sub.Close()
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	var told time.Time
	for {
		var announce bool
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			announce = true
		case <-f.sub.Ready():
			e, err := f.sub.Next(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("events: %w", err)
			}
			announce = f.take(e)
		}
		switch {
		case announce && time.Since(told) >= tickPause:
			told = time.Now()
			f.bus.Publish(tick, "") //nolint:errcheck // It has a number, which the next one tells as well.
			every.Reset(tickEvery)
		case announce:
			every.Reset(tickPause)
		}
	}
}

// take takes in what the bus delivers, and reports whether the others should be told how far
// this origin is: they should when this feed begins to hear, and when it hears of
// somebody who may have begun to.
func (f *Feed) take(e broadcast.Event) (announce bool) {
	switch {
	case e.Missed == nil:
		return f.hear(e.Message, time.Now())
	case e.Missed.Reason == broadcast.Disconnected: // after which there will be another notice
		return false
	}
	f.miss()
	return true
}

// Close ends all listeners, which hear what they have not heard yet, and lets nobody listen
// any more. An instance that stops calls it when it takes no new connections: those who come
// back then come to another one. Closing again changes nothing.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.audiences.wake()
}

// Stats returns counters.
func (f *Feed) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Listeners, s.Kept = f.listeners, int(f.next-f.first)
	return s
}

// hear takes a message in. It reports whether its origin is new, or has published what was not heard.
func (f *Feed) hear(m broadcast.Message, now time.Time) (fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, fresh := f.book.hear(m.ID, now)
	if fresh && k.floor > 0 {
		f.doubt++
		f.audiences.wake()
	}
	f.from, f.id = originOf(m.ID), ""
	f.audiences.back.wake() // by a tick, too
	if m.Topic == tick {
		return fresh
	}
	e := entry{message: m, from: f.from, known: k, seq: m.ID.Seq}
	if f.listeners > 0 {
		if e.id = f.where(); !f.read(&e) {
			return fresh
		}
	}
	f.stats.Heard++
	if f.next-f.first == uint64(len(f.ring)) {
		f.evict()
	}
	f.book.keep(k)
	f.ring[f.next%uint64(len(f.ring))] = e
	f.next++
	if f.listeners > 0 {
		f.audiences.each(e.event, func(a *audience) {
			a.next = f.next
			a.wake()
		})
	}
	return fresh
}

// read makes an event of what came. It reports whether it is one. It requires mu.
func (f *Feed) read(e *entry) bool {
	if e.message.Topic != "" {
		var err error
		if e.event, e.text, err = decode(e.message); err != nil {
			f.stats.Foreign++
		}
		e.message = broadcast.Message{}
	}
	return e.text != ""
}

// where returns the id of one who has heard everything. It requires mu.
func (f *Feed) where() string {
	if f.id == "" {
		f.id = f.book.id(f.from, time.Now())
	}
	return f.id
}

// evict makes room for an event. It requires mu.
func (f *Feed) evict() {
	old := &f.ring[f.first%uint64(len(f.ring))]
	f.book.evict(old.known, old.seq)
	f.first++
	if f.listeners > 0 && f.read(old) {
		f.audiences.each(old.event, func(a *audience) { a.lost = f.first })
	}
	*old = entry{}
}

// miss begins anew, as events may have been missed.
func (f *Feed) miss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.ring)
	f.next++ // so that those who have heard everything are behind, too
	f.first, f.era = f.next, f.next
	f.book.miss()
	f.from, f.id = origin{}, ""
	f.stats.Missed++
	f.audiences.wake()
}
