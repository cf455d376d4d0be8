package broadcast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Fanout gives what arrives at one process to its subscriptions. It is for backends:
// each has one, and calls Deliver, Miss, Up and Down from the goroutine that receives, in
// the order in which things happened. It waits for nobody.
type Fanout struct {
	room int

	mu         sync.Mutex
	live       bool
	closed     bool
	subs       set
	topics     map[string]set // by topic
	prefixes   map[string]set // by what stands before the star
	round      uint64         // numbers deliveries
	received   uint64
	overflowed uint64
	missing    uint64
	losses     uint64
}

type set map[*Subscription]struct{}

// NewFanout returns a Fanout whose subscriptions have room for so many events; 0 means
// 256. It fails with ErrInvalid if that is negative.
func NewFanout(room int) (*Fanout, error) {
	if room < 0 {
		return nil, fmt.Errorf("%w: a queue for %d events", ErrInvalid, room)
	}
	return &Fanout{room: cmp.Or(room, 256), subs: set{}, topics: map[string]set{}, prefixes: map[string]set{}}, nil
}

// Subscribe is [Bus.Subscribe].
func (f *Fanout) Subscribe(patterns ...string) (*Subscription, error) {
	if len(patterns) == 0 {
		return nil, fmt.Errorf("%w: no pattern", ErrInvalid)
	}
	for _, p := range patterns {
		if !validPattern(p) {
			return nil, fmt.Errorf("%w: pattern %.100q: give a topic, or the beginning of one with a dot and a star behind it, or a star", ErrInvalid, p)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	s := &Subscription{fan: f, patterns: slices.Clone(patterns), ready: make(chan struct{}, 1)}
	f.subs[s] = struct{}{}
	for _, p := range s.patterns {
		index, key := f.place(p)
		if index[key] == nil {
			index[key] = set{}
		}
		index[key][s] = struct{}{}
	}
	if f.live {
		s.miss(Missed{Reason: Connected})
	}
	return s, nil
}

// remove forgets s.
func (f *Fanout) remove(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
	for _, p := range s.patterns {
		index, key := f.place(p)
		delete(index[key], s)
		if len(index[key]) == 0 {
			delete(index, key)
		}
	}
}

// place is where the subscriptions with a pattern are.
func (f *Fanout) place(pattern string) (index map[string]set, key string) {
	if before, ok := strings.CutSuffix(pattern, "*"); ok {
		return f.prefixes, before
	}
	return f.topics, pattern
}

// Deliver gives m to the subscriptions to its topic.
func (f *Fanout) Deliver(m Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round++
	f.received++
	f.deliver(f.topics[m.Topic], m)
	f.deliver(f.prefixes[""], m)
	for i, c := range []byte(m.Topic) {
		if c == '.' {
			f.deliver(f.prefixes[m.Topic[:i+1]], m)
		}
	}
}

// deliver requires mu. A subscription with several patterns that match gets m once.
func (f *Fanout) deliver(to set, m Message) {
	for s := range to {
		if s.round == f.round {
			continue
		}
		s.round = f.round
		if !s.deliver(m) {
			f.overflowed++
		}
	}
}

// Miss tells all subscriptions that messages have been lost.
func (f *Fanout) Miss(m Missed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missing += m.Count
	f.tell(m)
}

// Up says that messages arrive from now on.
func (f *Fanout) Up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = true
	f.tell(Missed{Reason: Connected})
}

// Down says that none arrive from now on. A subscription that has not heard of an Up
// does not hear of the Down.
func (f *Fanout) Down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.live {
		return
	}
	f.live = false
	f.losses++
	f.tell(Missed{Reason: Disconnected})
}

// tell requires mu.
func (f *Fanout) tell(m Missed) {
	for s := range f.subs {
		s.miss(m)
	}
}

// Close ends all subscriptions, once they have been read.
func (f *Fanout) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.live = true, false
	for s := range f.subs {
		s.mu.Lock()
		s.end()
		s.mu.Unlock()
	}
	f.subs, f.topics, f.prefixes = set{}, map[string]set{}, map[string]set{}
}

// Stats returns what a Fanout can count.
func (f *Fanout) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Stats{
		Live: f.live, Subscriptions: len(f.subs), Received: f.received,
		Overflowed: f.overflowed, Missing: f.missing, Losses: f.losses,
	}
}

func validPattern(p string) bool {
	before, star := strings.CutSuffix(p, "*")
	if !star {
		return validTopic(p)
	}
	return before == "" || strings.HasSuffix(before, ".") && validTopic(before)
}
