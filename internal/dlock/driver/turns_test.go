package driver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// bank is a store with one key, which takes a second to answer.
type bank struct {
	driver.Turns

	free     chan struct{} // has an element while nobody holds the key
	token    uint64
	maxHold  time.Duration
	unshared bool

	mu      sync.Mutex
	failing error
	panics  bool
	grants  int
	ended   int
}

// set makes the store fail, or panic, or work again.
func (b *bank) set(failing error, panics bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing, b.panics = failing, panics
}

func newBank() *bank {
	b := &bank{free: make(chan struct{}, 1)}
	b.free <- struct{}{}
	return b
}

func (b *bank) acquire(ctx context.Context) (*dlock.Lease, error) { return b.Acquire(ctx, "k", b.take) }

func (b *bank) take(_ context.Context, s *driver.Share) (*dlock.Lease, driver.Wait, error) {
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.panics:
		panic("in the store")
	case b.failing != nil:
		return nil, nil, b.failing
	}
	return nil, func(ctx context.Context) (*dlock.Lease, error) {
		select {
		case <-b.free:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.grants++
		b.token += driver.TurnsPerGrant
		if b.unshared {
			s = nil
		}
		return dlock.NewLease(ctx, s.Of(dlock.Grant{
			Key: "k", Fence: dlock.Fence{Token: b.token, Owner: "o"}, Sent: time.Now(), TTL: time.Hour, MaxHold: b.maxHold,
			Release: func(context.Context) error { b.free <- struct{}{}; return nil },
			Ended: func(error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.ended++
			},
		})), nil
	}, nil
}

// bubble runs f on fake time with a new store, which is free again at the end.
func bubble(t *testing.T, f func(t *testing.T, b *bank)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		f(t, b)
		synctest.Wait()
		if len(b.free) != 1 || b.Waiting("k") != 0 || b.ended != b.grants {
			t.Errorf("of %d grants %d have ended, %d wait", b.grants, b.ended, b.Waiting("k"))
		}
	})
}

func (b *bank) hold(t *testing.T) *dlock.Lease {
	t.Helper()
	lease, err := b.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func giveBack(t *testing.T, l *dlock.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Turns are granted in the order of the calls, each with a higher token. A grant has no more turns than tokens.
func TestTurnsAreInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		var (
			waiters sync.WaitGroup
			order   []int
			tokens  = []uint64{first.Fence().Token}
		)
		const all = 3*driver.TurnsPerGrant - 1
		for i := range all {
			waiters.Go(func() {
				lease, err := b.acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order, tokens = append(order, i), append(tokens, lease.Fence().Token)
				giveBack(t, lease)
			})
			synctest.Wait()
		}
		giveBack(t, first)
		waiters.Wait()
		if len(order) != all || !slices.IsSorted(order) {
			t.Errorf("turns in the order %v", order)
		}
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("tokens %v", tokens)
			}
		}
		if b.grants != 3 {
			t.Errorf("%d grants for %d turns, want 3", b.grants, all+1)
		}
	})
}

// The holder of a turn may be slow. Then the next acquisition begins after 20 ms, and no turn after that.
func TestSlowTurnIsTheLastOne(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		time.Sleep(10 * time.Millisecond)
		if b.Waiting("k") != 1 {
			t.Error("the waiter has a place of its own in the store, and the grant has a turn left")
		}
		time.Sleep(time.Minute)
		if b.Waiting("k") != 0 {
			t.Error("the waiter has no place in the store, and the grant has no turn left")
		}
		giveBack(t, first)
		giveBack(t, <-next)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// A grant that is lost has no turn left.
func TestLostGrantHasNoTurns(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.maxHold = 5 * time.Millisecond
		first := b.hold(t)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		<-first.Done()
		lost := time.Now()
		if err := first.Release(t.Context()); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v", err)
		}
		b.free <- struct{}{} // the TTL is over
		lease := <-next
		if d := time.Since(lost); d > time.Second {
			t.Errorf("the next acquisition takes %v, want one answer of the store", d)
		}
		if b.grants != 2 || lease.Fence().Token <= first.Fence().Token {
			t.Errorf("%d grants, tokens %d and %d", b.grants, first.Fence().Token, lease.Fence().Token)
		}
		giveBack(t, lease)
	})
}

// Each turn has the whole of MaxHold.
func TestMaxHoldIsThatOfATurn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.maxHold = 15 * time.Millisecond
		first := b.hold(t)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		time.Sleep(14 * time.Millisecond)
		giveBack(t, first)
		lease := <-next
		time.Sleep(14 * time.Millisecond)
		if err := lease.Err(); err != nil || b.grants != 1 {
			t.Errorf("the turn has ended early: %v, %d grants", err, b.grants)
		}
		giveBack(t, lease)
	})
}

// Shut makes the next caller acquire its own lease.
func TestShutEndsTheSharing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		synctest.Wait()
		b.Shut("k")
		giveBack(t, first)
		giveBack(t, <-next)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// Callers that give up are passed over, and the last one takes the acquisition along.
func TestCancelledCallersGetNoTurn(t *testing.T) {
	for _, unshared := range []bool{false, true} {
		bubble(t, func(t *testing.T, b *bank) {
			b.unshared = unshared
			first := b.hold(t)
			reason := errors.New("shutting down")
			ctx, cancel := context.WithCancelCause(t.Context())
			var waiters sync.WaitGroup
			for range 5 {
				waiters.Go(func() {
					if _, err := b.acquire(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
						t.Errorf("Acquire = %v, want the end of the context and its cause", err)
					}
				})
			}
			time.Sleep(time.Minute)
			cancel(reason)
			waiters.Wait()
			giveBack(t, first)
			if b.grants != 1 {
				t.Errorf("%d grants, want 1", b.grants)
			}
			giveBack(t, b.hold(t))
		})
	}
}

// The place in the store is that of all waiters: it stays when the one that began the acquisition gives up.
func TestPlaceOutlivesItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		<-b.free // another process holds the key
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := b.acquire(ctx)
			failed <- err
		}()
		time.Sleep(time.Minute)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire = %v", err)
		}
		b.free <- struct{}{}
		began := time.Now()
		giveBack(t, <-next)
		if d := time.Since(began); d > 0 || b.grants != 1 {
			t.Errorf("%d grants, the second caller waited %v more: it has asked again", b.grants, d)
		}
	})
}

// A failed acquisition fails all waiting callers, and no later caller.
func TestWaitersShareAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.set(errAway, false)
		var waiters sync.WaitGroup
		for range 5 {
			waiters.Go(func() {
				start := time.Now()
				if _, err := b.acquire(t.Context()); !errors.Is(err, errAway) || time.Since(start) > time.Second {
					t.Errorf("Acquire = %v after %v", err, time.Since(start))
				}
			})
		}
		waiters.Wait()
		b.set(nil, false)
		giveBack(t, b.hold(t))
	})
}

// The end of a caller's time during its first request is its own affair.
func TestFirstCallerFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.set(errAway, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := b.acquire(ctx)
			failed <- err
		}()
		synctest.Wait()
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		time.Sleep(time.Second)
		if err := <-failed; !errors.Is(err, errAway) {
			t.Errorf("Acquire = %v", err)
		}
		b.set(nil, false)
		giveBack(t, <-next)
	})
}

// A panic is one of the caller that is first. The others get an error, and nobody is left waiting.
func TestPanicOfAnAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.set(nil, true)
		var (
			waiters sync.WaitGroup
			mu      sync.Mutex
			panics  int
		)
		for range 5 {
			waiters.Go(func() {
				defer func() {
					if recover() != nil {
						mu.Lock()
						defer mu.Unlock()
						panics++
					}
				}()
				if _, err := b.acquire(t.Context()); err == nil {
					t.Error("a lease of nothing")
				}
			})
			synctest.Wait()
		}
		waiters.Wait()
		if panics != 1 {
			t.Errorf("%d callers panicked, want 1", panics)
		}
		b.set(nil, false)
		giveBack(t, b.hold(t))
	})
}
