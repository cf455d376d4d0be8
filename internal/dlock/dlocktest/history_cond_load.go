package dlocktest

import (
	"context"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// CondLoad is what the clients of a condition do: the first ones signal, the others
// wait.
type CondLoad struct {
	Keys    []string
	Signals int           // how many clients signal
	Quiet   time.Duration // how long signaling clients pause now and then
	MaxWait time.Duration // the longest time for one call
	Seed    uint64
}

// Run lets all clients work until ctx ends. Then each key gets one last broadcast, after its holder has recorded that
// nobody is to wait any more. The broadcast alone has to wake all waiters. Run returns when it has.
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
