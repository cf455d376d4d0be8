package dlocktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// History is what clients of one lock service did and saw. Clients record into
// it; afterwards Check holds it against a model.
//
// Instants are read under one mutex and never repeat, so that of two events in
// this process the earlier one is known to be the earlier. What happens inside
// another process has to be recorded from outside, with an interval that contains it.
type History struct {
	// Faulty says that the network or the store fails in this history. A waiting
	// client may then be granted what it never hears of, so a refusal while somebody
	// waits proves nothing. Set it before the first client is made.
	Faulty bool

	// TTL is that of the leases in a faulty history. A release that takes a tenth of
	// it may find nothing, for the store may have dropped the grant meanwhile; one
	// that is faster and finds nothing is a mistake.
	TTL time.Duration

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

// lapse records that from then on nobody relies on the grant of owner.
func (h *History) lapse(key, owner string, from time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	h.events = append(h.events, &event{client: h.clients, call: Call{Op: OpLapse, Key: key, Owner: owner}, from: from})
}

// LoseAll runs f, in which the store may lose every grant that it has made: it is
// killed, or replaced by another one.
func (h *History) LoseAll(f func()) { h.harm(nil, f) }

// Stop runs f, in which the process of the clients stands still and cannot know when
// its leases end.
func (h *History) Stop(f func(), clients ...*HistoryClient) { h.harm(clients, f) }

func (h *History) harm(clients []*HistoryClient, f func()) {
	from := h.instant()
	f()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fault{clients, from, h.now()})
}

// Haunt says that from now on the store may think that n permits of each key are
// held which nobody holds: a replica that has taken over may have missed their release.
func (h *History) Haunt(n int, keys ...string) {
	for _, key := range keys {
		h.add(nil, h.client(), Call{Op: OpTry, Key: key, N: n})
	}
}

// Grants is how often something was granted.
func (h *History) Grants() int { return h.count(func(e *event) bool { return e.granted() }) }

// Doubts is how many losses and unknown outcomes there were. A history without
// faults has none.
func (h *History) Doubts() int {
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
	return (e.call.Op == OpTry || e.call.Op == OpAcquire) && e.outcome.Result == Done
}

func (h *History) client() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	return h.clients
}

// Locker returns a client that takes keys of l. It makes one call at a time.
func (h *History) Locker(l dlock.Locker) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: single{l}}
}

// Semaphore returns a client that takes permits of s. It makes one call at a time.
func (h *History) Semaphore(s dlock.Semaphore) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: s}
}

// single is a lock as a semaphore with one permit.
type single struct{ l dlock.Locker }

// Acquire implements [dlock.Semaphore].
func (s single) Acquire(ctx context.Context, key string, _ int) (*dlock.Lease, error) {
	return s.l.Acquire(ctx, key)
}

// TryAcquire implements [dlock.Semaphore].
func (s single) TryAcquire(ctx context.Context, key string, _ int) (*dlock.Lease, error) {
	return s.l.TryAcquire(ctx, key)
}

// HistoryClient is a client whose calls are recorded.
type HistoryClient struct {
	h  *History
	id int
	s  dlock.Semaphore
}

// Acquire takes n permits of key, and waits for them.
func (c *HistoryClient) Acquire(ctx context.Context, key string, n int) (*HistoryLease, error) {
	e := c.h.add(c, c.id, Call{Op: OpAcquire, Key: key, N: n})
	lease, err := c.s.Acquire(ctx, key, n)
	return c.taken(e, lease, err)
}

// TryAcquire takes n permits of key if they are free.
func (c *HistoryClient) TryAcquire(ctx context.Context, key string, n int) (*HistoryLease, error) {
	e := c.h.add(c, c.id, Call{Op: OpTry, Key: key, N: n})
	lease, err := c.s.TryAcquire(ctx, key, n)
	return c.taken(e, lease, err)
}

func (c *HistoryClient) taken(e *event, lease *dlock.Lease, err error) (*HistoryLease, error) {
	switch {
	case err == nil:
		c.h.end(e, Outcome{Result: Done, Fence: lease.Fence()})
		l := &HistoryLease{Lease: lease, c: c}
		lease.OnEnd(func(error) {
			if errors.Is(lease.Err(), dlock.ErrLost) {
				l.lapse(c.h.instant())
			}
		})
		return l, nil
	case e.call.Op == OpTry && errors.Is(err, dlock.ErrHeld):
		c.h.end(e, Outcome{Result: Refused})
	case errors.Is(err, dlock.ErrUncertain), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// Its effect may come at any time: the next call of this client is that of another.
		c.id = c.h.client()
	default:
		c.h.drop(e)
	}
	return nil, err
}

// HistoryLease is a lease whose end is recorded.
type HistoryLease struct {
	*dlock.Lease

	c    *HistoryClient
	once sync.Once
}

// Release gives the lease back.
func (l *HistoryLease) Release(ctx context.Context) error {
	e := l.c.h.add(l.c, l.c.id, Call{Op: OpRelease, Key: l.Key(), Owner: l.Fence().Owner})
	err := l.Lease.Release(ctx)
	switch {
	case errors.Is(l.Err(), dlock.ErrLost): // before: the store has not been asked
		l.lapse(e.from)
		l.c.h.drop(e)
	case err == nil:
		l.c.h.end(e, Outcome{Result: Done})
	case errors.Is(err, dlock.ErrLost):
		l.c.h.end(e, Outcome{Result: Lost})
		if h := l.c.h; h.TTL > 0 && e.to-e.from >= h.TTL/10 {
			l.lapse(e.from)
		}
	default:
		l.c.id = l.c.h.client()
	}
	return err
}

func (l *HistoryLease) lapse(from time.Duration) {
	l.once.Do(func() { l.c.h.lapse(l.Key(), l.Fence().Owner, from) })
}
