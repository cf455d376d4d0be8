package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/platform/backoff"
)

// Errors of [Feed.Listen].
var (
	// ErrTooMany means that there are too many listeners.
	ErrTooMany = errors.New("events: too many listeners")

	// ErrClosed means that the feed has ended or is closing.
	ErrClosed = errors.New("events: the feed is closed")
)

const (
	// readSize limits the entries of one read of the log.
	readSize = 64

	// readPause is the pause after a failed read of the log.
	readPause = 200 * time.Millisecond
)

// FeedConfig is the configuration of a [Feed]. Its zero value is the default.
type FeedConfig struct {
	// Buffer is the number of latest events that are kept for slow and returning listeners. The default is 8,192, which
	// takes some 5 MB, or 9 MB with listeners.
	Buffer int

	// Listeners limits concurrent listeners; 0 means 2,000.
	Listeners int

	// PerCustomer limits concurrent listeners of one customer; 0 means 20.
	PerCustomer int

	// OnError is called once per outage, when a read of the log fails. It must not block, and may be nil.
	OnError func(error)
}

// Validate returns an error for an invalid configuration.
func (c FeedConfig) Validate() error {
	if c.Buffer < 0 || c.Listeners < 0 || c.PerCustomer < 0 {
		return fmt.Errorf("events: a buffer of %d, %d listeners, %d of one customer: give none that is negative", c.Buffer, c.Listeners, c.PerCustomer)
	}
	return nil
}

// Stats are the counters of one feed. Those that are not states only grow.
type Stats struct {
	Live      bool // whether the log can be read
	Listeners int
	Kept      int // events in the buffer

	Received uint64 // events that were read from the log
	Foreign  uint64 // entries that are no events, as far as somebody listened
	Missed   uint64 // how often events may have been missed, of which all listeners are notified
	Resets   uint64 // how often a listener was notified so, or that it was too slow or came back too late
	Refused  uint64 // listeners for whom there was no room
	Looks    uint64 // how often a listener looked for something new
}

// Feed reads the log for one instance and keeps its latest events for the listeners. It is safe for concurrent use.
type Feed struct {
	cfg FeedConfig
	log Log

	mu        sync.Mutex
	ring      []kept // of events first to next-1, event n at n % len
	first     uint64
	next      uint64
	before    position // everything that follows it is in the ring; zero: nothing is known to be
	last      position // of this feed
	misses    uint64   // how often the ring was emptied: 0 until the first read
	failing   bool     // the last read has failed
	stop      context.CancelFunc
	audiences audiences
	closed    bool
	listeners int
	customers map[string]int
	stats     Stats
}

// kept is an event in the ring. It is decoded on demand: most older events are never
// sent, because only returning listeners read them.
type kept struct {
	at    position
	raw   string // empty when it has been decoded
	event Event
	text  string // the event in JSON; empty if the entry is no event
}

// NewFeed returns a feed of log. It reads nothing before Run. It fails if the configuration is invalid.
func NewFeed(log Log, c FeedConfig) (*Feed, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Buffer, c.Listeners, c.PerCustomer = cmp.Or(c.Buffer, 8192), cmp.Or(c.Listeners, 2000), cmp.Or(c.PerCustomer, 20)
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Feed{
		cfg: c, log: log, ring: make([]kept, c.Buffer), stop: func() {},
		audiences: audiences{of: make(map[subject]*audience)}, customers: make(map[string]int),
	}, nil
}

// Run reads the log until ctx ends or the feed is closed. Call it once. At its end all listeners end. Run may return some seconds
// late, because a read does not end at once with its context.
func (f *Feed) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	f.stop = cancel
	if f.closed {
		cancel()
	}
	f.mu.Unlock()
	defer f.Close()
	for continues := false; ctx.Err() == nil; {
		var err error
		if continues, err = f.read(ctx, continues); err == nil || ctx.Err() != nil {
			continue
		}
		if f.fails() {
			f.cfg.OnError(fmt.Errorf("events: %w", err))
		}
		backoff.Sleep(ctx, readPause)
	}
	return nil
}

// read reads new entries, or after a gap the latest entries. It reports whether the next read can continue from there.
func (f *Feed) read(ctx context.Context, continues bool) (continued bool, err error) {
	if !continues {
		entries, err := f.log.Latest(ctx, f.cfg.Buffer)
		if err != nil {
			return false, err
		}
		f.begin(entries)
		return true, nil
	}
	entries, err := f.log.Next(ctx, f.last.ID, readSize)
	if errors.Is(err, ErrGap) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return f.take(entries), nil
}

// fails records that the log cannot be read, and reports whether the outage just began.
func (f *Feed) fails() (began bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began = !f.failing
	f.failing, f.stats.Live = true, false
	return began
}

// Close ends all listeners after their pending events, and refuses new
// listeners. A stopping instance calls it when it accepts no new connections, so that clients
// reconnect to another instance. Further calls have no effect.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.stop()
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

// begin fills the ring with the latest entries. All earlier listeners are reset, because entries may be missing in between.
func (f *Feed) begin(entries []Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing, f.stats.Live = false, true
	if f.misses > 0 {
		f.stats.Missed++
	}
	f.miss()
	f.before = position{}
	for _, e := range entries {
		f.add(e)
	}
	f.audiences.wake()
}

// take adds entries to the ring, and reports false at a gap.
func (f *Feed) take(entries []Entry) (continues bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing, f.stats.Live = false, true
	defer f.audiences.back.wake()
	for _, e := range entries {
		if e.Previous != f.last.ID {
			return false
		}
		f.add(e)
	}
	return true
}

// add adds the events of an entry to the ring. It requires mu.
func (f *Feed) add(e Entry) {
	if e.Lost {
		f.stats.Missed++
		f.miss()
		f.audiences.wake()
	}
	f.last = position{ID: e.ID}
	if f.next == f.first && f.before == (position{}) {
		f.before = f.last
	}
	for _, text := range e.Texts {
		f.stats.Received++
		if f.next-f.first == uint64(len(f.ring)) {
			f.evict()
		}
		f.last.n++
		added := f.at(f.next)
		*added = kept{at: f.last, raw: text}
		f.next++
		if f.listeners > 0 && f.decode(added) {
			f.audiences.each(added.event, func(a *audience) {
				a.next = f.next
				a.wake()
			})
		}
	}
}
