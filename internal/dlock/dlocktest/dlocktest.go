// Package dlocktest has the conformance tests of [dlock.Locker]. Every backend runs them, against a real server if
// it has one. The names of the cases are the guarantees of the contract, and documents link to them.
//
// A [Harness] gives the tests access to the store and to its faults. If a store lacks a capability, its harness
// omits it, and the cases that need it are skipped. Every case has its own key, so cases run in parallel on one
// store. Every wait has its own deadline, so a broken backend fails instead of hanging.
package dlocktest

import (
	"context"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// Harness describes one backend.
type Harness struct {
	// New returns another client of the store, as another process would have it.
	New func(t testing.TB) dlock.Locker

	// TTL is that of the clients.
	TTL time.Duration

	// Expire makes the store drop the grant of a key, as if its TTL had passed.
	Expire func(t testing.TB, key string)

	// Wipe makes the store forget all it knows of a key. Nil: it cannot forget.
	Wipe func(t testing.TB, key string)

	// FIFO says that Acquire grants in the order of the calls, or in that of the processes if grants are shared.
	FIFO bool

	// Shares says that the callers of one client take turns under its grants: package share decorates it.
	Shares bool

	// FallbackPoll is how long a waiter pauses at most between two polls of its own, if
	// it is otherwise woken by a message. 0: there are no messages.
	FallbackPoll time.Duration

	// Deaf withholds all messages from a client. It returns the client. Nil: there are no messages.
	Deaf func(t testing.TB) dlock.Locker

	// Leftovers returns what the store still has of key when nobody holds it or waits
	// for it, other than the last fence. Nil: nothing can be left.
	Leftovers func(t testing.TB, key string) []string

	// Crowd is how many waiters the store can serve. 0 means 1,000.
	Crowd int

	// AtOnce is how many cases run alongside each other at most. 0 means as many as go test allows.
	AtOnce int

	// Reentrant says that a holder can enter again, with the context of its lease.
	Reentrant bool

	// Capped returns a client whose leases last for limit at most. Nil: it has no cap.
	Capped func(t testing.TB, limit time.Duration) dlock.Locker

	// Behind breaks the network of a client. It returns the client and its network. Nil: there is no network.
	Behind func(t testing.TB) (dlock.Locker, Link)

	// Other returns a client whose leases have that TTL. Nil: all have the same.
	Other func(t testing.TB, ttl time.Duration) dlock.Locker

	// Answers are errors by which the client of the store says that it was answered, or
	// that nothing was sent.
	Answers []error

	// Foreign puts a value in the place of a holder that no client has put there, and that does not end by
	// itself. Nil: nothing can be there.
	Foreign func(t testing.TB, key string)

	// Bubble runs a case on fake time, as synctest.Test does. Nil: on real time.
	Bubble func(t *testing.T, f func(t *testing.T))

	// as returns the side of a client that shared cases are about. Nil: it has one side.
	as func(l dlock.Locker) dlock.Locker

	// waiters counts those who wait for key, for a backend that is no Inspector.
	waiters func(t testing.TB, key string) int
}

// Link is the network between one client and the store.
type Link struct {
	Cut       func()     // holds all bytes back both ways; connections stay open
	Heal      func()     // ends Cut and Refuse, and delivers what was held back
	LoseReply func()     // loses the reply to the next request, once the store has executed it
	Lost      func() int // how many replies were lost
	Refuse    func()     // breaks all connections, and refuses new ones; nil if it cannot
}

func cases() []caseOf[Harness] {
	return slices.Concat([]caseOf[Harness]{
		{"TryAcquireHeld", tryAcquireHeld},
		{"ReleaseTwice", releaseTwice},
		{"AcquireWaits", acquireWaits},
		{"AcquireInOrder", acquireInOrder},
		{"AcquireCancelledLeavesNothing", acquireCancelled},
		{"KeepsAlive", keepsAlive},
		{"LossHasAReason", lossHasAReason},
		{"LateReleaseIsHarmless", lateRelease},
		{"LateRenewalIsHarmless", lateRenewal},
		{"FenceIncreases", fenceIncreases},
		{"FenceSurvivesWipe", fenceSurvivesWipe},
		{"DoCancelsOnLoss", doCancelsOnLoss},
		{"DoKeepsASuccess", doKeepsASuccess},
		{"DoReleasesAfterCancel", doReleasesAfterCancel},
		{"DoReleasesOnPanic", doReleasesOnPanic},
		{"MutualExclusion", mutualExclusion},
		{"BlackHoleIsReportedBeforeTheNextGrant", blackHole},
		{"BlackHoleAcquireLeavesNothing", blackHoleAcquire},
		{"ReplyLostReleaseFrees", replyLostRelease},
		{"FIFOByLog", fifoByLog},
		{"TurnsOfAGrant", turnsOfAGrant},
		{"OthersWaitForOneGrant", othersWaitForOneGrant},
		{"TurnIsKeptAlive", turnIsKeptAlive},
		{"TurnAfterALongWait", turnAfterALongWait},
		{"LossEndsTheTurns", lossEndsTheTurns},
		{"HandOffWithoutPolling", handOffWithoutPolling},
		{"LostNotificationCostsAtMostAFallbackPoll", lostNotification},
		{"DeadWaiterIsPassedOver", deadWaiterIsPassedOver},
		{"WaitersLeaveNothing", waitersLeaveNothing},
		{"PrivateKeysNeverStall", privateKeysNeverStall},
		{"ReentrantIsCounted", reentrantIsCounted},
		{"ReentrantNeedsTheContext", reentrantNeedsTheContext},
		{"ReentrantCostsNoRoundTrip", reentrantCostsNoRoundTrip},
		{"ReentrantLossEndsAll", reentrantLossEndsAll},
		{"NestedOnLostLeaseFails", nestedOnLostLease},
		{"AcquireAllTakesAllOrNone", acquireAllOrNone},
		{"AcquireAllNeverDeadlocks", acquireAllNeverDeadlocks},
		{"AcquireAllLosesAllWithOne", acquireAllLoses},
		{"AcquireAllIsReentrant", acquireAllIsReentrant},
		{"InspectTells", inspectTells},
		{"ForceReleaseIsTold", forceReleaseIsTold},
		{"ForceReleaseHandsOn", forceReleaseHandsOn},
		{"MaxHoldEndsTheLease", maxHoldEndsTheLease},
	}, eachCases(), exclusiveCases(), sharedCases())
}

// Run checks every promise of [dlock.Locker].
func Run(t *testing.T, h Harness) {
	t.Helper()
	open := h.New
	h.New = func(t testing.TB) dlock.Locker { return tracked{open(t), t} }
	h.Behind = through(h.Behind, func(t testing.TB, l dlock.Locker) dlock.Locker { return tracked{l, t} })
	if other := h.Other; other != nil {
		h.Other = func(t testing.TB, ttl time.Duration) dlock.Locker { return tracked{other(t, ttl), t} }
	}
	run(t, cases(), h, h.TTL, h.AtOnce, h.Bubble)
}

// through returns behind with its clients as wrap makes them, or nil without a network.
func through[L, M any](behind func(t testing.TB) (L, Link), wrap func(t testing.TB, l L) M) func(t testing.TB) (M, Link) {
	if behind == nil {
		return nil
	}
	return func(t testing.TB) (M, Link) {
		l, link := behind(t)
		return wrap(t, l), link
	}
}

// tracked releases what a failing case leaves behind: in a bubble a lease that
// is kept alive would hide the failure behind a panic.
type tracked struct {
	dlock.Locker
	t testing.TB
}

// Acquire implements [dlock.Locker].
func (l tracked) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.track(l.Locker.Acquire(ctx, key))
}

// TryAcquire implements [dlock.Locker].
func (l tracked) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.track(l.Locker.TryAcquire(ctx, key))
}

func (l tracked) track(lease *dlock.Lease, err error) (*dlock.Lease, error) {
	if err == nil {
		l.t.Cleanup(func() { lease.Release(l.t.Context()) })
	}
	return lease, err
}

func (l tracked) own() any { return l.Locker }

// own returns the client that l tracks.
func own(l any) any {
	if tracking, ok := l.(interface{ own() any }); ok {
		return tracking.own()
	}
	return l
}

// optional returns the client that l tracks as a T, or skips the case.
func optional[T any](t testing.TB, l any) T {
	t.Helper()
	power, ok := own(l).(T)
	if !ok {
		t.Skipf("%T is no %T", own(l), (*T)(nil))
	}
	return power
}

// acquire waits for key for ten TTLs at most. A request may take too long, once or
// twice: the machine is busy.
func acquire(ctx context.Context, t testing.TB, h Harness, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*h.TTL)
	defer cancel()
	lease, err := patiently(t, func() (*dlock.Lease, error) { return l.Acquire(ctx, key) })
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return lease
}

// result is that of an acquisition.
type result struct {
	lease *dlock.Lease
	err   error
}

// acquiring has another goroutine acquire key.
func acquiring(ctx context.Context, l dlock.Locker, key string) <-chan result {
	got := make(chan result, 1)
	go func() {
		lease, err := l.Acquire(ctx, key)
		got <- result{lease, err}
	}()
	return got
}

func tryAcquire(ctx context.Context, t testing.TB, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	lease, err := patiently(t, func() (*dlock.Lease, error) { return l.TryAcquire(ctx, key) })
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	return lease
}

// inside runs f while it holds key.
func inside(ctx context.Context, t testing.TB, l dlock.Locker, key string, f func(f dlock.Fence) error) {
	t.Helper()
	if err := dlock.Do(ctx, l, key, func(_ context.Context, fence dlock.Fence) error { return f(fence) }); err != nil {
		t.Error(err)
	}
}

func release(ctx context.Context, t testing.TB, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(ctx); err != nil {
		t.Fatalf("Release: %v", err)
	}
}
