package dlocktest

import (
	"slices"
	"sync"
	"time"
)

// History is what clients of one lock service did and saw. Clients record into it, and Check compares it with a
// model.
//
// Instants are read under one mutex and never repeat, so events in this process have an order. An event inside
// another process is recorded from outside, with an interval that contains it.
type History struct {
	// Faulty says that the network or the store fails in this history. A waiting
	// client may then be granted what it is never notified of, so a refusal while somebody
	// waits proves nothing. Set it before the first client is made.
	Faulty bool

	// TTL is that of the leases in a faulty history. A release that takes a tenth of it may find nothing, because the
	// store may have dropped the grant. A faster release that finds nothing is a mistake.
	TTL time.Duration

	// SplitVotes says that attempts at the same time can refuse one another, as those
	// that collect votes do: then no refusal proves anything. Set it before the first
	// client is made.
	SplitVotes bool

	mu      sync.Mutex
	base    time.Time
	last    time.Duration
	events  []*event
	clients int
	faults  []fault
}

// event is one operation. It is open as long as to is 0.
type event struct {
	by       *HistoryClient // nil if nobody
	client   int
	call     Call
	outcome  Outcome
	from, to time.Duration
}

// fault is a time in which every grant may have been lost, or every one of a client.
type fault struct {
	of       []*HistoryClient // nil if all
	from, to time.Duration
}

// NewHistory returns an empty history that begins now.
func NewHistory() *History { return &History{base: time.Now()} }

// now requires mu.
func (h *History) now() time.Duration {
	h.last = max(h.last+1, time.Since(h.base))
	return h.last
}

// instant is now, for those who do not have mu.
func (h *History) instant() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now()
}

// add records something that begins now, and that has not ended.
func (h *History) add(by *HistoryClient, client int, c Call) *event {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := &event{by: by, client: client, call: c, outcome: Outcome{Result: Unknown}, from: h.now()}
	h.events = append(h.events, e)
	return e
}

// end records how e ended. An unknown outcome leaves it open.
func (h *History) end(e *event, o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.outcome = o
	if o.Result != Unknown {
		e.to = h.now()
	}
}

// drop forgets e, which certainly had no effect.
func (h *History) drop(e *event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = slices.DeleteFunc(h.events, func(other *event) bool { return other == e })
}

// expire records that from then on nobody relies on the grant of owner.
func (h *History) expire(key, owner string, from time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	h.events = append(h.events, &event{client: h.clients, call: Call{Op: OpExpire, Key: key, Owner: owner}, from: from})
}

// LoseAll runs f, in which the store may lose every grant that it has made: it is
// killed, or replaced by another one.
func (h *History) LoseAll(f func()) { h.harm(nil, f) }

// Pause runs f, in which the process of the clients is paused and cannot know when
// its leases end.
func (h *History) Pause(f func(), clients ...*HistoryClient) { h.harm(clients, f) }

func (h *History) harm(clients []*HistoryClient, f func()) {
	from := h.instant()
	f()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fault{clients, from, h.now()})
}

// AddGhosts records that, from now on, the store may count n permits of each key as held without a holder. A replica
// that took over may have missed their release.
func (h *History) AddGhosts(n int, keys ...string) {
	for _, key := range keys {
		h.add(nil, h.client(), Call{Op: OpTry, Key: key, N: n})
	}
}

// Grants is how often something was granted.
func (h *History) Grants() int { return h.count(func(e *event) bool { return e.granted() }) }

// Disruptions counts losses and unknown outcomes. A history without faults has none.
func (h *History) Disruptions() int {
	return h.count(func(e *event) bool { return e.to == 0 || e.outcome.Result == Lost })
}

func (h *History) count(f func(e *event) bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, e := range h.events {
		if f(e) {
			n++
		}
	}
	return n
}

// granted requires the mutex of the history.
func (e *event) granted() bool {
	return (e.call.Op == OpTry || e.call.Op == OpAcquire || e.call.Op == OpWake) && e.outcome.Result == Done
}

func (h *History) client() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	return h.clients
}
