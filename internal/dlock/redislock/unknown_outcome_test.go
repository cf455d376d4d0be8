package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/dlock/semlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// straggler times a request out and delivers it later: after the first poll for
// what it may have done.
type straggler struct {
	key     string        // others do not count: what the wait before has left is being released
	lose    int           // which request it is
	lost    chan struct{} // closed when it has timed out
	arrived chan struct{} // closed when it has been delivered

	mu     sync.Mutex
	calls  int
	late   []redis.Cmder
	script string
	after  map[string]bool // other scripts that were called since: the release, the look
}

func (h *straggler) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	mine := slices.DeleteFunc(slices.Clone(cmds), func(cmd redis.Cmder) bool { return !strings.Contains(cmd.String(), h.key) })
	if len(mine) == 0 {
		return send(ctx, cmds)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	switch {
	case h.calls == h.lose:
		h.late = testbedtest.Late(ctx, cmds)
		h.script, h.after = scriptOf(mine[0]), map[string]bool{}
		close(h.lost)
		return testbedtest.Lose(cmds, os.ErrDeadlineExceeded)
	case h.calls > h.lose && len(h.after) < 2:
		for _, cmd := range mine { // which may be sent together
			if script := scriptOf(cmd); script != h.script {
				h.after[script] = true
			}
		}
		if len(h.after) >= 2 {
			defer close(h.arrived)
			err := send(ctx, cmds)
			return errors.Join(err, send(ctx, h.late))
		}
	}
	return send(ctx, cmds)
}

// scriptOf returns the digest of the script that cmd runs.
func scriptOf(cmd redis.Cmder) string {
	script, _ := cmd.Args()[1].(string)
	return script
}

// waiter is a way to wait for a key.
type waiter struct {
	wait func(ctx context.Context, key string) (*dlock.Lease, error)
	hold func(ctx context.Context, key string) (*dlock.Lease, error)
	give func(ctx context.Context, lease *dlock.Lease) error // to the waiter
	lose int                                                 // which request of the waiter asks again
	last bool                                                // whether hold is for when it waits
}

func releases(ctx context.Context, lease *dlock.Lease) error { return lease.Release(ctx) }

// waiterOf returns ways to wait with own for what others hold.
func waiterOf(t testing.TB, kind string, own, others redis.UniversalClient) waiter {
	t.Helper()
	switch kind {
	case "lock":
		return waiter{wait: locker(t, own).Acquire, hold: locker(t, others).Acquire, give: releases, lose: 2}
	case "semaphore":
		cfg := redissem.Config{TTL: ttl}
		one, other := semlock.Mutex(redistest.Semaphore(t, own, cfg)), semlock.Mutex(redistest.Semaphore(t, others, cfg))
		return waiter{wait: one.Acquire, hold: other.Acquire, give: releases, lose: 2}
	case "writer":
		return waiter{wait: redistest.RW(t, own, redisrw.Config{}).Acquire, hold: redistest.RW(t, others, redisrw.Config{}).Acquire, give: releases, lose: 2}
	case "reader":
		return waiter{wait: redistest.RW(t, own, redisrw.Config{}).AcquireRead, hold: redistest.RW(t, others, redisrw.Config{}).Acquire, give: releases, lose: 2}
	}
	l, other := locker(t, own), locker(t, others)
	sleeper, waker := condition(t, l, "a"), condition(t, other, "a")
	sleep := func(ctx context.Context, key string) (*dlock.Lease, error) {
		lease, err := l.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return sleeper.Wait(ctx, lease)
	}
	wake := func(ctx context.Context, lease *dlock.Lease) error {
		return errors.Join(waker.Signal(ctx, lease), lease.Release(ctx))
	}
	return waiter{wait: sleep, hold: other.Acquire, give: wake, lose: 3, last: true}
}

// A waiter whose repeated request timed out is granted the key, and releases it.
// Then that request arrives and takes the key for nobody: it is released long
// before its TTL.
func TestRequestThatArrivesAfterTheRelease(t *testing.T) {
	t.Parallel()
	url := testbedtest.Redis(t)
	for _, kind := range []string{"lock", "semaphore", "writer", "reader", "condition"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
				defer cancel()
				own, key := redistest.Client(t, url), rand.Text()
				w := waiterOf(t, kind, own, redistest.Client(t, url))
				loadWait(ctx, t, w, rand.Text())
				late := &straggler{key: key, lose: w.lose, lost: make(chan struct{}), arrived: make(chan struct{})}
				own.AddHook(testbedtest.RoundTrips(late.roundTrip))
				late.run(ctx, t, w, key)
				start := time.Now()
				next, err := w.hold(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d > 2*ttl/3 {
					t.Errorf("the key was free only after %v; the TTL is %v", d, ttl)
				}
				next.Release(ctx)
			})
		})
	}
}

// loadWait has the server load the scripts of a wait that is given up.
func loadWait(ctx context.Context, t testing.TB, w waiter, key string) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, ttl/2)
	defer cancel()
	if !w.last {
		lease, err := w.hold(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release(ctx)
	}
	if _, err := w.wait(short, key); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wait = %v, want the end of its time", err)
	}
}

// run returns when the request has arrived.
func (h *straggler) run(ctx context.Context, t testing.TB, w waiter, key string) {
	t.Helper()
	var held, lease *dlock.Lease
	var err, failed error
	if !w.last {
		if held, err = w.hold(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, failed = w.wait(ctx, key)
	}()
	soon(ctx, t, "lost", h.lost)
	if w.last {
		if held, err = w.hold(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.give(ctx, held); err != nil {
		t.Fatal(err)
	}
	soon(ctx, t, "granted", done)
	if failed != nil {
		t.Fatal(failed)
	}
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	soon(ctx, t, "looked for", h.arrived)
}

func soon(ctx context.Context, t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-ctx.Done():
		t.Fatalf("the request was not %s", what)
	}
}

// A waiter whose poll was lost enters again with the lease that it is granted. The lost poll is rolled back when the
// last of its leases has ended.
func TestReentryAfterALostPoll(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		own, others, key := redistest.Client(t, testbedtest.Redis(t)), locker(t, redistest.Client(t, testbedtest.Redis(t))), rand.Text()
		l := locker(t, own)
		sleeper, waker := condition(t, l, "a"), condition(t, others, "a")
		held, err := l.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		late := &straggler{key: key, lose: 3, lost: make(chan struct{}), arrived: make(chan struct{})}
		own.AddHook(testbedtest.RoundTrips(late.roundTrip))
		woken := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := sleeper.Wait(ctx, held)
			if err != nil {
				t.Error(err)
			}
			woken <- lease
		}()
		soon(ctx, t, "lost", late.lost)
		first, err := others.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(waker.Signal(ctx, first), first.Release(ctx)); err != nil {
			t.Fatal(err)
		}
		outer := <-woken
		if outer == nil {
			return
		}
		within, stop := outer.Context(ctx)
		defer stop()
		inner, err := l.Acquire(within, key)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Release(ctx)
		if err := outer.Release(ctx); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(ttl); time.Now().Before(end); <-time.After(ttl / 200) {
			if _, err := others.TryAcquire(ctx, key); !errors.Is(err, dlock.ErrHeld) {
				t.Fatalf("TryAcquire = %v while it is held by the inner lease: %v", err, inner.Err())
			}
		}
	})
}
