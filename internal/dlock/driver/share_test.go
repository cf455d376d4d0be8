package driver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// pair has a holder of a key, and another caller that waits for it.
func pair(t *testing.T, b *bank) (first *dlock.Lease, next chan *dlock.Lease) {
	t.Helper()
	first, next = b.hold(t), make(chan *dlock.Lease)
	go func() { next <- b.hold(t) }()
	synctest.Wait()
	return first, next
}

// The holder of a turn may be slow. Then the next acquisition begins after 20 ms, and no turn after that.
func TestSlowTurnIsTheLastOne(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first, next := pair(t, b)
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
		first, next := pair(t, b)
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
		first, next := pair(t, b)
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
		first, next := pair(t, b)
		b.Shut("k")
		giveBack(t, first)
		giveBack(t, <-next)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// Shut is also about a grant that is on its way.
func TestShutEndsTheSharingOfAGrantToCome(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		leases := make(chan *dlock.Lease)
		for range 2 {
			go func() { leases <- b.hold(t) }()
		}
		synctest.Wait()
		b.Shut("k")
		giveBack(t, <-leases)
		giveBack(t, <-leases)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// A caller that arrives when a grant is old gets no turn, even if the grant is released at this moment.
func TestOldGrantHasNoTurns(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		time.Sleep(time.Minute)
		lease, err := b.acquire(arriving{t.Context(), sync.OnceFunc(func() { giveBack(t, first) })})
		if err != nil {
			t.Fatal(err)
		}
		giveBack(t, lease)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// arriving is the context of a caller that has begun to wait when f is called.
type arriving struct {
	context.Context //nolint:containedctx // It is one.
	f               func()
}

func (a arriving) Done() <-chan struct{} {
	a.f()
	return a.Context.Done()
}

// A store may have a grant for a waiter, and renew it. A turn under it is valid since the last renewal.
func TestTurnIsValidSinceTheLastRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.early, b.ttl = true, time.Second
		b.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: b.ttl, Renew: func(_ context.Context, held []dlock.Held) []error {
			return make([]error, len(held))
		}})
		<-b.free // another process holds the key
		leases := make(chan *dlock.Lease)
		for range 2 {
			go func() { leases <- b.hold(t) }()
		}
		time.Sleep(time.Minute)
		b.free <- struct{}{}
		giveBack(t, <-leases)
		turn := <-leases
		if err := turn.Err(); err != nil || b.grants != 1 {
			t.Errorf("a turn of %d grants begins with %v", b.grants, err)
		}
		time.Sleep(time.Minute)
		giveBack(t, turn)
	})
}

// The renewal that a release waits for may return the loss of the grant. Then nobody gets another turn.
func TestLossDuringAReleaseEndsTheSharing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.ttl = 30 * time.Millisecond
		b.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: b.ttl, Renew: func(context.Context, []dlock.Held) []error {
			time.Sleep(2 * time.Millisecond)
			return []error{dlock.ErrLost}
		}})
		first, next := pair(t, b)
		time.Sleep(b.ttl/3 + time.Millisecond)
		giveBack(t, first)
		lease := <-next
		if b.grants != 2 {
			t.Errorf("%d grants, want 2: %v has a turn under a grant that is lost", b.grants, lease.Fence())
		}
		giveBack(t, lease)
	})
}

// The release of a turn may wait for a renewal until the validity of the grant is over. Then nobody gets another turn.
func TestNoTurnBeginsAfterTheValidity(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.ttl = 20 * time.Millisecond // valid for 18 ms
		b.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: b.ttl, Renew: func(context.Context, []dlock.Held) []error {
			time.Sleep(12 * time.Millisecond) // from the 7th to the 19th
			return []error{errAway}
		}})
		first, next := pair(t, b)
		time.Sleep(17 * time.Millisecond)
		giveBack(t, first)
		lease := <-next
		if err := lease.Err(); err != nil || b.grants != 2 {
			t.Errorf("a lease of %d grants begins with %v", b.grants, err)
		}
		giveBack(t, lease)
	})
}
