package dlocktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// Locker returns a client that takes keys of l. It makes one call at a time.
func (h *History) Locker(l dlock.Locker) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: single{l}}
}

// Semaphore returns a client that takes permits of s. It makes one call at a time.
func (h *History) Semaphore(s dlock.Semaphore) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: s}
}

// RW returns a client that takes keys of l: one permit is a reader's, RWPermits are
// the writer's. It makes one call at a time.
func (h *History) RW(l dlock.RWLocker) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: rwSemaphore{l}, share: true}
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
	h     *History
	id    int
	s     dlock.Semaphore
	cond  dlock.Cond // nil but for Cond
	share bool       // readers share keys
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

// Resize gives key n permits, which the backend must be able to do.
func (c *HistoryClient) Resize(ctx context.Context, key string, n int) error {
	e := c.h.add(c, c.id, Call{Op: OpResize, Key: key, N: n})
	err := c.s.(dlock.Resizer).Resize(ctx, key, n)
	if err == nil {
		c.h.end(e, Outcome{Result: Done})
	} else {
		c.id = c.h.client()
	}
	return err
}

func (c *HistoryClient) taken(e *event, lease *dlock.Lease, err error) (*HistoryLease, error) {
	switch {
	case err == nil:
		return c.granted(e, lease), nil
	case e.call.Op == OpTry && errors.Is(err, dlock.ErrHeld):
		c.h.end(e, Outcome{Result: Refused})
	case errors.Is(err, dlock.ErrInvalidPermits): // possibly after it had waited, in the way of others
		c.h.end(e, Outcome{Result: Invalid})
	case errors.Is(err, dlock.ErrUncertain), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// Its effect may come at any time: the next call of this client is that of another.
		c.id = c.h.client()
	default:
		c.h.drop(e)
	}
	return nil, err
}

// granted ends e with lease.
func (c *HistoryClient) granted(e *event, lease *dlock.Lease) *HistoryLease {
	o := Outcome{Result: Done, Fence: lease.Fence()}
	l := &HistoryLease{Lease: lease, c: c, owner: o.Fence.Owner}
	c.h.end(e, o)
	lease.OnEnd(func(error) {
		if errors.Is(lease.Err(), dlock.ErrLost) {
			l.expire(c.h.instant())
		}
	})
	return l
}

// HistoryLease is a lease whose end is recorded.
type HistoryLease struct {
	*dlock.Lease

	c     *HistoryClient
	owner string // names the grant in the history
	once  sync.Once
}

// Release releases the lease.
func (l *HistoryLease) Release(ctx context.Context) error {
	e := l.c.h.add(l.c, l.c.id, Call{Op: OpRelease, Key: l.Key(), Owner: l.owner})
	err := l.Lease.Release(ctx)
	switch {
	case errors.Is(l.Err(), dlock.ErrLost): // before: the store has not been asked
		l.expire(e.from)
		l.c.h.drop(e)
	case err == nil:
		l.c.h.end(e, Outcome{Result: Done})
	case errors.Is(err, dlock.ErrLost):
		l.c.h.end(e, Outcome{Result: Lost})
		if h := l.c.h; h.TTL > 0 && e.to-e.from >= h.TTL/10 {
			l.expire(e.from)
		}
	default:
		l.c.id = l.c.h.client()
	}
	return err
}

func (l *HistoryLease) expire(from time.Duration) {
	l.once.Do(func() { l.c.h.expire(l.Key(), l.owner, from) })
}
