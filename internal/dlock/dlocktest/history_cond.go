package dlocktest

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// Cond returns a client that takes keys of l and waits with c, which belongs to l.
// It makes one call at a time.
func (h *History) Cond(l dlock.Locker, c dlock.Cond) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: single{l}, cond: c}
}

// Wait gives l up and waits for a signal. The lease is nil after an error.
func (c *HistoryClient) Wait(ctx context.Context, l *HistoryLease) (*HistoryLease, error) {
	sleep := c.h.add(c, c.id, Call{Op: OpSleep, Key: l.Key(), Owner: l.owner})
	wake := c.h.add(c, c.h.client(), Call{Op: OpWake, Key: l.Key(), N: 1})
	lease, err := c.cond.Wait(ctx, l.Lease)
	if err == nil {
		next := c.granted(wake, lease)
		c.h.slept(sleep, next.owner)
		return next, nil
	}
	// It may have slept or not, and may have been woken or not. The lease is over.
	c.h.uncertain(sleep, OpRelease)
	c.h.uncertain(wake, OpAcquire)
	c.id = c.h.client()
	return nil, err
}

// Signal wakes one who waits, as the holder of l, or all of them.
func (c *HistoryClient) Signal(ctx context.Context, l *HistoryLease, all bool) error {
	call, send := Call{Op: OpSignal, Key: l.Key(), Owner: l.owner}, c.cond.Signal
	if all {
		call.Op, send = OpBroadcast, c.cond.Broadcast
	}
	e := c.h.add(c, c.id, call)
	err := send(ctx, l.Lease)
	switch {
	case err == nil:
		c.h.end(e, Outcome{Result: Done})
	case errors.Is(err, dlock.ErrLost): // possibly without a word to the store
		c.h.drop(e)
	default:
		c.id = c.h.client()
	}
	return err
}

// slept records that e ended with the next grant, of that owner.
func (h *History) slept(e *event, next string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.call.Next, e.outcome, e.to = next, Outcome{Result: Done}, h.now()
}

// uncertain makes e another operation, whose outcome is unknown.
func (h *History) uncertain(e *event, op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.call.Op = op
}

// CondLoad is what the clients of a condition do: the first ones signal, the others
// wait.
type CondLoad struct {
	Keys    []string
	Signals int           // how many clients signal
	Quiet   time.Duration // how long those who signal pause now and then
	MaxWait time.Duration // the longest time for one call
	Seed    uint64
}

// Run lets all clients work until ctx ends. Then each holder marks its key as closed
// and broadcasts once more. All sleepers must wake up by that broadcast alone. Run
// returns when they have.
func (l CondLoad) Run(ctx context.Context, clients ...*HistoryClient) {
	var waiting, signalling sync.WaitGroup
	w := &condWork{CondLoad: l, closed: map[string]bool{}}
	for i, c := range clients {
		random := mathrand.New(mathrand.NewPCG(l.Seed, uint64(i)))
		if i < l.Signals {
			signalling.Go(func() { w.signal(ctx, c, random) })
		} else {
			waiting.Go(func() { w.wait(ctx, c, random) })
		}
	}
	signalling.Wait()
	for _, key := range l.Keys {
		for !w.close(context.WithoutCancel(ctx), clients[0], key) {
			pause(context.WithoutCancel(ctx), time.Millisecond)
		}
	}
	waiting.Wait()
}

type condWork struct {
	CondLoad

	mu     sync.Mutex
	closed map[string]bool // keys with which nobody is to wait any more
}

// wait ignores errors: the history has them.
func (w *condWork) wait(ctx context.Context, c *HistoryClient, random *mathrand.Rand) {
	for ctx.Err() == nil {
		w.with(ctx, c, w.any(random), func(attempt context.Context, lease *HistoryLease) {
			for lease != nil && w.open(lease.Key()) && random.IntN(4) > 0 {
				lease, _ = c.Wait(attempt, lease)
			}
			if lease != nil {
				_ = lease.Release(attempt)
			}
		})
		pause(ctx, time.Duration(random.Int64N(int64(3*time.Millisecond)))) // do not flood a server that is unavailable
	}
}

func (w *condWork) signal(ctx context.Context, c *HistoryClient, random *mathrand.Rand) {
	for ctx.Err() == nil {
		w.with(ctx, c, w.any(random), func(attempt context.Context, lease *HistoryLease) {
			for range random.IntN(3) {
				_ = c.Signal(attempt, lease, random.IntN(8) == 0)
			}
			_ = lease.Release(attempt)
		})
		rest := time.Duration(random.Int64N(int64(6 * time.Millisecond))) // some shall sleep
		if random.IntN(32) == 0 {
			rest = w.Quiet
		}
		pause(ctx, rest)
	}
}

// close reports whether the last broadcast was sent.
func (w *condWork) close(ctx context.Context, c *HistoryClient, key string) (sent bool) {
	w.with(ctx, c, key, func(attempt context.Context, lease *HistoryLease) {
		w.mu.Lock()
		w.closed[key] = true
		w.mu.Unlock()
		sent = c.Signal(attempt, lease, true) == nil
		_ = lease.Release(attempt)
	})
	return sent
}

func (w *condWork) open(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed[key]
}

func (w *condWork) any(random *mathrand.Rand) string { return w.Keys[random.IntN(len(w.Keys))] }

func (w *condWork) with(ctx context.Context, c *HistoryClient, key string, f func(context.Context, *HistoryLease)) {
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.MaxWait)
	defer cancel()
	if lease, err := c.Acquire(attempt, key, 1); err == nil {
		f(attempt, lease)
	}
}
