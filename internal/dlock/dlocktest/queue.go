package dlocktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// fifoByLog has every waiter write its number down, under the lock.
func fifoByLog(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	const waiters = 24
	clients := 3
	if h.Shares {
		clients = waiters
	}
	first := acquire(ctx, t, h, h.New(t), key)
	var lockers []dlock.Locker
	for range clients {
		lockers = append(lockers, h.New(t))
	}
	next := 0
	turn := func() dlock.Locker {
		next++
		return lockers[next%clients]
	}
	inOrder(ctx, t, waiters, first, turn, h.inspecting(ctx, h.New(t)).queued)
}

// handOff returns how long it takes from a release until the waiter of to has the key.
func handOff(ctx context.Context, t testing.TB, h Harness, from, to dlock.Locker, key string) time.Duration {
	first := acquire(ctx, t, h, from, key)
	granted := make(chan time.Time, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		lease, err := to.Acquire(ctx, key)
		granted <- time.Now()
		if err != nil {
			t.Error(err)
			return
		}
		lease.Release(ctx)
	})
	h.inspecting(ctx, from).queued(ctx, t, key, 1)
	pause(ctx, rand.N(h.FallbackPoll/2)) // anywhere between two polls
	start := time.Now()
	release(ctx, t, first)
	return (<-granted).Sub(start)
}

func handOffWithoutPolling(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.FallbackPoll > 0, "there are no messages")
	a, b := h.New(t), h.New(t)
	handOff(ctx, t, h, a, b, key) // subscribed
	var took []time.Duration
	for range 9 {
		took = append(took, handOff(ctx, t, h, a, b, key))
	}
	slices.Sort(took)
	// A waiter polls again after three tenths of the pause at the earliest.
	if d := took[len(took)/3]; d > h.FallbackPoll/4 {
		t.Errorf("a hand-off takes %v, while a waiter polls by itself every %v", d, h.FallbackPoll)
	}
}

func lostNotification(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Deaf != nil, "there are no messages")
	a, deaf := h.New(t), h.Deaf(t)
	for range 3 {
		if d := handOff(ctx, t, h, a, deaf, key); d > h.FallbackPoll+h.TTL/4 {
			t.Errorf("without the message the hand-off took %v, want %v at most", d, h.FallbackPoll)
		}
	}
}

// deadWaiterIsPassedOver has a client die in the queue.
func deadWaiterIsPassedOver(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil && h.FIFO, "no client can die in a queue")
	first := acquire(ctx, t, h, h.New(t), key)
	dying, link := h.Behind(t)
	gone, end := context.WithCancel(ctx)
	var dead sync.WaitGroup
	defer link.Heal()
	defer dead.Wait() // before its last request gets through: the key is free then
	defer end()
	dead.Go(func() {
		if lease, err := dying.Acquire(gone, key); err == nil {
			t.Error("a client without a network has the key")
			lease.Release(ctx)
		}
	})
	h.queued(ctx, t, key, 1)
	link.Cut()
	next := acquiring(ctx, h.New(t), key)
	h.queued(ctx, t, key, 2)
	release(ctx, t, first)
	got := within(t, next, 3*h.TTL, "the next waiter has no key")
	wantErr(t, got.err, nil)
	release(ctx, t, got.lease)
}

// waitersLeaveNothing has a crowd of waiters give up at random moments, among them
// those at which they are granted the key.
func waitersLeaveNothing(ctx context.Context, t testing.TB, h Harness, key string) {
	const clients = 4
	waiters := cmp.Or(h.Crowd, 1000)
	var lockers []dlock.Locker
	for range clients {
		lockers = append(lockers, h.New(t))
	}
	var (
		wg      sync.WaitGroup
		granted atomic.Int32
		mu      sync.Mutex
		failed  []error
	)
	for i := range waiters {
		wg.Go(func() {
			short, cancel := context.WithTimeout(ctx, rand.N(h.TTL))
			defer cancel()
			lease, err := lockers[i%clients].Acquire(short, key)
			switch {
			case err == nil:
				granted.Add(1)
				pause(short, rand.N(h.TTL/500))
				lease.Release(ctx)
			case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, dlock.ErrUncertain): // or the store is too slow
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if !timedOut(err) { // the store did not answer in time
			t.Errorf("Acquire = %v, want the end of the context", err)
		}
	}
	t.Logf("%d of %d were granted", granted.Load(), waiters)
	end := time.Now().Add(h.TTL)
	lease := acquire(ctx, t, h, h.New(t), key)
	if time.Now().After(end) {
		t.Errorf("the key is free only %v after the last waiter has left", time.Since(end)+h.TTL)
	}
	release(ctx, t, lease)
	if h.Leftovers == nil {
		return
	}
	var left []string
	for end := time.Now().Add(h.TTL); time.Now().Before(end); pause(ctx, 10*time.Millisecond) {
		if left = h.Leftovers(t, key); len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %v", left)
}

// timedOut reports whether err says that a store did not answer in time.
func timedOut(err error) bool {
	var slow net.Error
	return errors.As(err, &slow) && slow.Timeout()
}

// privateKeysNeverStall has 32 goroutines use a key each over a network that
// stalls again and again. Nobody waits for anybody, so all must get on.
func privateKeysNeverStall(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	const goroutines, limit = 32, 2 * time.Second
	l, link := h.Behind(t)
	undisturbed := h.New(t)
	over, end := context.WithTimeout(ctx, 2*h.TTL)
	defer end()
	var (
		wg      sync.WaitGroup
		slow    time.Duration
		last    [goroutines]atomic.Int64
		longest [goroutines]time.Duration
	)
	wg.Go(func() { slow = slowness(over, undisturbed, key) })
	start := time.Now()
	for i := range goroutines {
		own := fmt.Sprint(key, "-", i)
		wg.Go(func() {
			for over.Err() == nil {
				if lease, err := l.Acquire(over, own); err == nil {
					lease.Release(over)
					now := int64(time.Since(start))
					longest[i] = max(longest[i], time.Duration(now-last[i].Swap(now)))
				} else if over.Err() == nil {
					t.Logf("Acquire = %v", err)
				}
				pause(over, rand.N(20*time.Millisecond)) // less than a cut takes, so that it catches all of them
			}
			longest[i] = max(longest[i], time.Since(start)-time.Duration(last[i].Load()))
		})
	}
	for over.Err() == nil {
		link.Cut()
		pause(over, 25*time.Millisecond)
		link.Heal()
		pause(over, 25*time.Millisecond+rand.N(75*time.Millisecond))
	}
	wg.Wait()
	if worst := slices.Max(longest[:]); worst > limit+10*slow {
		t.Errorf("a goroutine made no progress for %v, want %v at most; without stalls it took %v", worst, limit, slow)
	}
}
