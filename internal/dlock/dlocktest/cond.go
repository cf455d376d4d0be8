package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// CondHarness describes one backend of [dlock.Cond].
type CondHarness struct {
	// New returns another client of the store, as another process would have it.
	New func(t testing.TB) CondClient

	// TTL is that of the clients.
	TTL time.Duration

	// Expire makes the store drop the grant of key, as if its TTL had passed.
	Expire func(t testing.TB, key string)

	// Waiting returns how many wait for key, or for a signal with it. Nil: the store cannot report it.
	Waiting func(t testing.TB, key string) int

	// Reentrant says that the context of a lease makes its user the holder.
	Reentrant bool

	// Behind returns a client whose network can be broken. Nil: there is no network.
	Behind func(t testing.TB) (CondClient, Link)

	// WaiterTTL is how long the store keeps a waiter that has fallen silent.
	// It is needed with Behind only.
	WaiterTTL time.Duration

	// Bubble runs a case on fake time, as synctest.Test does. Nil: on real time.
	Bubble func(t *testing.T, f func(t *testing.T))
}

// CondClient is a Locker with two conditions of its keys, the same two for every client.
type CondClient struct {
	dlock.Locker
	A, B dlock.Cond
}

func condCases() []caseOf[CondHarness] {
	return []caseOf[CondHarness]{
		{"WaitReleasesTheLock", waitReleases},
		{"SignalWakesOne", signalWakesOne},
		{"BroadcastWakesAll", broadcastWakesAll},
		{"SignalWithoutWaitersIsLost", signalWithoutWaiters},
		{"SignalsInOrder", signalsInOrder},
		{"SignalOutlivesItsSender", signalOutlivesItsSender},
		{"ConditionsAreIndependent", conditionsAreIndependent},
		{"NewLeaseNewFence", newLeaseNewFence},
		{"WaitTimesOutHoldingNothing", waitTimesOut},
		{"DeadContextWaitsForNothing", deadContextWaits},
		{"CancelledWaiterPassesItsSignalOn", cancelledWaiterPassesOn},
		{"CancelledWaiterPassesItsGrantOn", cancelledWaiterPassesGrantOn},
		{"WaitOnLostLease", waitOnLostLease},
		{"CauseLeavesNoWaiter", causeLeavesNoSleeper},
		{"CloseEndsWait", closeEndsWait},
		{"BlockingOnEndDelaysNobody", blockingOnEndOfWoken},
		{"NestedHolderMayNotWait", nestedHolderMayNotWait},
		{"SignalNeedsTheLock", signalNeedsTheLock},
		{"NoLostWakeups", noLostWakeups},
		{"DeadWaiterIsSkipped", deadWaiterIsSkipped},
		{"ReplyLostWaitHoldsNothing", replyLostWait},
		{"WaitersLeaveNothing", condWaitersLeaveNothing},
	}
}

// RunCond checks every promise of [dlock.Cond].
func RunCond(t *testing.T, h CondHarness) {
	t.Helper()
	track := func(t testing.TB, c CondClient) CondClient {
		return CondClient{tracked{c.Locker, t}, trackedCond{c.A, t}, trackedCond{c.B, t}}
	}
	open := h.New
	h.New = func(t testing.TB) CondClient { return track(t, open(t)) }
	h.Behind = through(h.Behind, track)
	run(t, condCases(), h, h.TTL, 0, h.Bubble)
}

// trackedCond releases what a failing case leaves behind, as tracked does.
type trackedCond struct {
	dlock.Cond
	t testing.TB
}

// Wait implements [dlock.Cond].
func (c trackedCond) Wait(ctx context.Context, l *dlock.Lease) (*dlock.Lease, error) {
	return tracked{t: c.t}.track(c.Cond.Wait(ctx, l))
}

// sleeper waits for a signal with key.
type sleeper struct {
	woken chan *dlock.Lease // nil after an error
	err   error
}

// sleep starts a waiter, and returns it once it waits: it has released the key.
func (h CondHarness) sleep(ctx context.Context, t testing.TB, c CondClient, key string) *sleeper {
	t.Helper()
	s := startSleeper(ctx, c, h.lock(ctx, t, c, key))
	release(ctx, t, h.lock(ctx, t, h.New(t), key))
	return s
}

// startSleeper starts a waiter that gives held up.
func startSleeper(ctx context.Context, c CondClient, held *dlock.Lease) *sleeper {
	s := &sleeper{woken: make(chan *dlock.Lease, 1)}
	go func() {
		var lease *dlock.Lease
		lease, s.err = c.A.Wait(ctx, held)
		s.woken <- lease
	}()
	return s
}

// lock takes key within ten TTLs.
func (h CondHarness) lock(ctx context.Context, t testing.TB, c CondClient, key string) *dlock.Lease {
	t.Helper()
	return acquire(ctx, t, Harness{TTL: h.TTL}, c.Locker, key)
}

// queued returns once n wait for key or a signal, or may do so, if the store does not report it.
func (h CondHarness) queued(ctx context.Context, t testing.TB, key string, n int) {
	t.Helper()
	Harness{TTL: h.TTL, waiters: h.Waiting}.queued(ctx, t, key, n)
}

// notify takes key and signals once.
func (h CondHarness) notify(ctx context.Context, t testing.TB, key string) {
	t.Helper()
	c := h.New(t)
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lease), nil)
	release(ctx, t, lease)
}

// end returns with what s has waited for.
func (h CondHarness) end(t testing.TB, s *sleeper) (*dlock.Lease, error) {
	t.Helper()
	return within(t, s.woken, 2*h.TTL+h.WaiterTTL, "a waiter sleeps on"), s.err
}

// awake returns the lease of s, which must have been woken.
func (h CondHarness) awake(t testing.TB, s *sleeper) *dlock.Lease {
	t.Helper()
	lease, err := h.end(t, s)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	wantErr(t, lease.Err(), nil)
	return lease
}

// asleep checks that none of those has been woken a while from now.
func (h CondHarness) asleep(ctx context.Context, t testing.TB, sleepers ...*sleeper) {
	t.Helper()
	pause(ctx, h.TTL/4)
	for i, s := range sleepers {
		select {
		case <-s.woken:
			t.Fatalf("waiter %d was woken: %v", i, s.err)
		default:
		}
	}
}

// wantFree checks that key is free now.
func (h CondHarness) wantFree(ctx context.Context, t testing.TB, key string) {
	t.Helper()
	release(ctx, t, tryAcquire(ctx, t, h.New(t), key))
}

// causeLeavesNoSleeper cancels waiters for reasons that look like an outcome: none is left to take a signal.
func causeLeavesNoSleeper(ctx context.Context, t testing.TB, h CondHarness, key string) {
	for _, cause := range (Harness{}).causes() {
		caused, end := context.WithCancelCause(ctx)
		first, second := h.sleep(caused, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
		end(cause)
		_, err := h.end(t, first)
		wantErr(t, err, context.Canceled)
		wantErr(t, err, cause)
		h.notify(ctx, t, key) // for the second one
		release(ctx, t, h.awake(t, second))
	}
	h.wantFree(ctx, t, key)
}

// closeEndsWait closes a client that has a woken lease and a waiter. The lease is lost, and the wait ends. Another
// waiter gets the signal and the key.
func closeEndsWait(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	end := optional[closer](t, c.Locker)
	s := h.sleep(ctx, t, c, key+"-woken")
	h.notify(ctx, t, key+"-woken")
	woken := h.awake(t, s)
	waiting, other := h.sleep(ctx, t, c, key), h.sleep(ctx, t, h.New(t), key)
	wantErr(t, end.Close(ctx), nil)
	wantReason(t, woken.Err(), dlock.Closed)
	next := h.New(t)
	release(ctx, t, h.lock(ctx, t, next, key+"-woken"))
	lease := h.lock(ctx, t, next, key)
	wantErr(t, next.A.Broadcast(ctx, lease), nil)
	release(ctx, t, lease)
	release(ctx, t, h.awake(t, other))
	if lease, err := h.end(t, waiting); err == nil {
		wantErr(t, lease.Err(), dlock.ErrLost)
	}
	release(ctx, t, h.lock(ctx, t, next, key))
}

// blockingOnEndOfWoken has a callback of a woken lease that does not return. The client has other waiters.
func blockingOnEndOfWoken(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	s := h.sleep(ctx, t, c, key+"-lost")
	h.notify(ctx, t, key+"-lost")
	called, blocked := make(chan struct{}), make(chan struct{})
	defer close(blocked)
	h.awake(t, s).OnEnd(func(error) {
		close(called)
		<-blocked
	})
	h.Expire(t, key+"-lost")
	within(t, called, 2*h.TTL, "OnEnd is not called")
	s = h.sleep(ctx, t, c, key)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}
