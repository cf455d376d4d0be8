package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/semlock"
)

// SemaphoreHarness describes one backend of [dlock.Semaphore]. A type assertion finds the optional capabilities of the
// client that New returns, such as [dlock.Resizer].
type SemaphoreHarness struct {
	// New returns another client of the store, as another process would have it,
	// for semaphores with that many permits.
	New func(t testing.TB, permits int) dlock.Semaphore

	// TTL is that of the clients.
	TTL time.Duration

	// Expire makes the store drop every grant of key, as if their TTLs had passed.
	Expire func(t testing.TB, key string)

	// Wipe makes the store forget all it knows of key. The limit is not guaranteed over a wipe. The cases check that
	// it holds among the permits granted before, and among the permits granted after. They also check that the former
	// holders are notified. Nil: the store cannot forget.
	Wipe func(t testing.TB, key string)

	// Remembers says that a client which has used a key detects that its store was wiped. Then nobody is granted
	// permits until the former holders have expired.
	Remembers bool

	// Waiters counts those whom the store knows to wait for key. Nil: it does not know.
	Waiters func(t testing.TB, key string) int

	// FIFO says that Acquire grants in the order of the calls. A waiter for few permits passes no waiter for many.
	FIFO bool

	// Ordered says that fencing tokens strictly increase from grant to grant.
	Ordered bool

	// Behind returns a client whose network can be broken. Nil: there is no network.
	Behind func(t testing.TB, permits int) (dlock.Semaphore, Link)

	// Other returns a client with one permit whose leases have that TTL. Nil: all have
	// the same.
	Other func(t testing.TB, ttl time.Duration) dlock.Semaphore

	// Answers are as in [Harness].
	Answers []error

	// Bubble runs a case on fake time, as synctest.Test does. Nil: on real time.
	Bubble func(t *testing.T, f func(t *testing.T))
}

func semaphoreCases() []caseOf[SemaphoreHarness] {
	cases := []caseOf[SemaphoreHarness]{
		{"NeverMoreThanThePermits", semNeverMore},
		{"TryAcquireRefusesAtOnce", semTryRefuses},
		{"AcquireWaits", semAcquireWaits},
		{"AcquireInOrder", semInOrder},
		{"CancelledLeavesNothing", semCancelled},
		{"DeadContextAcquiresNothing", semDeadContextAcquires},
		{"DeadContextStillReleases", semDeadContextReleases},
		{"WaitersLeaveNothing", semWaitersLeaveNothing},
		{"ReleaseTwice", semReleaseTwice},
		{"ReleaseNeverMoreThanHeld", semReleaseNeverMore},
		{"KeepsAlive", semKeepsAlive},
		{"LossIsReported", semLossIsReported},
		{"DeadHolderGivesBack", semDeadHolder},
		{"LimitHoldsOnEachSideOfAWipe", semWipe},
		{"KnownWipeIsWaitedOut", semKnownWipe},
		{"FenceIncreases", semFenceIncreases},
		{"Weighted", semWeighted},
		{"WeightedHeadIsNotStarved", semHeadNotStarved},
		{"WeightedHeadIsNotPassed", semHeadNotPassed},
		{"WeightedAcquirersDoNotDeadlock", semNoDeadlock},
		{"TooManyIsRefused", semTooMany},
		{"ResizeUp", semResizeUp},
		{"ResizeDown", semResizeDown},
		{"ResizeDownUnderLoad", semResizeUnderLoad},
		{"ResizeRefusesWhoWaitsForTooMany", semResizeRefuses},
		{"LostReplyLosesNoPermit", semLostReply},
		{"LostReplyOfReleaseLosesNoPermit", semLostRelease},
		{"BlackHoleAcquireLeavesNothing", semBlackHoleAcquire},
		{"BlackHoleIsReportedBeforeTheNextGrant", semBlackHole},
	}
	for _, c := range sharedCases() {
		cases = append(cases, caseOf[SemaphoreHarness]{c.name, func(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
			c.fn(ctx, t, h.mutex(), key)
		}})
	}
	return cases
}

// mutex is the harness of semaphores with one permit, as locks.
func (h SemaphoreHarness) mutex() Harness {
	m := Harness{
		New: func(t testing.TB) dlock.Locker { return tracked{semlock.Mutex(h.New(t, 1)), t} },
		TTL: h.TTL, Expire: h.Expire, FIFO: h.FIFO, Answers: h.Answers, waiters: h.Waiters,
	}
	if h.Behind != nil {
		m.Behind = func(t testing.TB) (dlock.Locker, Link) {
			s, link := h.Behind(t, 1)
			return tracked{semlock.Mutex(s), t}, link
		}
	}
	if h.Other != nil {
		m.Other = func(t testing.TB, ttl time.Duration) dlock.Locker { return tracked{semlock.Mutex(h.Other(t, ttl)), t} }
	}
	return m
}

// RunSemaphore checks every promise of [dlock.Semaphore].
func RunSemaphore(t *testing.T, h SemaphoreHarness) {
	t.Helper()
	open := h.New
	h.New = func(t testing.TB, permits int) dlock.Semaphore { return trackedSemaphore{open(t, permits), t} }
	if behind := h.Behind; behind != nil {
		h.Behind = func(t testing.TB, permits int) (dlock.Semaphore, Link) {
			s, link := behind(t, permits)
			return trackedSemaphore{s, t}, link
		}
	}
	run(t, semaphoreCases(), h, h.TTL, 0, h.Bubble)
}

// trackedSemaphore releases what a failing case leaves behind.
type trackedSemaphore struct {
	dlock.Semaphore
	t testing.TB
}

// Acquire implements [dlock.Semaphore].
func (s trackedSemaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return tracked{t: s.t}.track(s.Semaphore.Acquire(ctx, key, n))
}

// TryAcquire implements [dlock.Semaphore].
func (s trackedSemaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return tracked{t: s.t}.track(s.Semaphore.TryAcquire(ctx, key, n))
}

func (s trackedSemaphore) own() any { return s.Semaphore }

// take waits for n permits of key for ten TTLs at most.
func (h SemaphoreHarness) take(ctx context.Context, t testing.TB, s dlock.Semaphore, key string, n int) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*h.TTL)
	defer cancel()
	lease, err := patiently(t, func() (*dlock.Lease, error) { return s.Acquire(ctx, key, n) })
	if err != nil {
		t.Fatalf("Acquire(%d): %v", n, err)
	}
	return lease
}

// queued returns once so many wait for key, or may do so, if the store does not report it.
func (h SemaphoreHarness) queued(ctx context.Context, t testing.TB, key string, waiters int) {
	t.Helper()
	Harness{TTL: h.TTL, waiters: h.Waiters}.queued(ctx, t, key, waiters)
}

// waiting has another goroutine Acquire n permits of key, and returns once so many wait
// with it. The result comes within ten TTLs.
func (h SemaphoreHarness) waiting(ctx context.Context, t testing.TB, s dlock.Semaphore, key string, n, waiters int) <-chan result {
	t.Helper()
	got := make(chan result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 10*h.TTL)
		defer cancel()
		lease, err := s.Acquire(ctx, key, n)
		got <- result{lease, err}
	}()
	h.queued(ctx, t, key, waiters)
	return got
}

// wantWaiting checks that nothing has come yet.
func wantWaiting(t testing.TB, got <-chan result) {
	t.Helper()
	select {
	case r := <-got:
		t.Fatalf("Acquire = %v, %v, want it to wait", r.lease, r.err)
	default:
	}
}

// wantFreePermits checks that n permits of key are free and no more. It allows
// for a background that is still releasing, but for less than a TTL.
func (h SemaphoreHarness) wantFreePermits(ctx context.Context, t testing.TB, s dlock.Semaphore, key string, n int) {
	t.Helper()
	var leases []*dlock.Lease
	for deadline := time.Now().Add(2 * h.TTL / 3); len(leases) < n; {
		lease, err := s.TryAcquire(ctx, key, 1)
		switch {
		case err == nil:
			leases = append(leases, lease)
		case !errors.Is(err, dlock.ErrHeld) && !errors.Is(err, dlock.ErrUncertain) || time.Now().After(deadline):
			t.Fatalf("permit %d of %d: %v", len(leases)+1, n, err)
		default:
			pause(ctx, h.TTL/50)
		}
	}
	if lease, err := s.TryAcquire(ctx, key, 1); err == nil {
		t.Errorf("more than %d permits are free", n)
		release(ctx, t, lease)
	}
	for _, lease := range leases {
		release(ctx, t, lease)
	}
}
