package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// RWHarness describes one backend of [dlock.RWLocker].
type RWHarness struct {
	// New returns another client of the store, as another process would have it.
	New func(t testing.TB) dlock.RWLocker

	// TTL is that of the clients.
	TTL time.Duration

	// Expire makes the store drop every grant of key, as if its TTL had passed.
	Expire func(t testing.TB, key string)

	// Waiting returns how many wait for key. Nil: the store does not say, and
	// cases give a waiter a moment to queue.
	Waiting func(t testing.TB, key string) int

	// FIFO says that readers and writers are served in the order of arrival.
	FIFO bool

	// Capped returns a client whose leases last for limit at most. Nil: it has no cap.
	Capped func(t testing.TB, limit time.Duration) dlock.RWLocker

	// Behind returns a client whose network can be broken. Nil: there is no network.
	Behind func(t testing.TB) (dlock.RWLocker, Link)

	// WaiterTTL is how long the store keeps a waiter that has fallen silent.
	// It is needed with Behind only.
	WaiterTTL time.Duration

	// Other returns a client whose leases have that TTL. Nil: all have the same.
	Other func(t testing.TB, ttl time.Duration) dlock.RWLocker

	// Answers are as in [Harness].
	Answers []error

	// Bubble runs a case on fake time, as synctest.Test does. Nil: on real time.
	Bubble func(t *testing.T, f func(t *testing.T))
}

func rwCases() []caseOf[RWHarness] {
	cases := []caseOf[RWHarness]{
		{"ReadersShare", readersShare},
		{"WriterExcludesAll", writerExcludesAll},
		{"AcquireWaits", rwAcquireWaits},
		{"CancelledReaderLeavesNothing", func(ctx context.Context, t testing.TB, h RWHarness, key string) {
			acquireCancelled(ctx, t, h.locker(false), key)
		}},
		{"CancelledWriterLeavesNothing", cancelledWriter},
		{"CancelledWaiterPassesItsGrantOn", cancelledRWWaiter},
		{"WriterGetsNewFence", writerGetsNewFence},
		{"ArrivalOrder", arrivalOrder},
		{"WritersInOrder", writersInOrder},
		{"WriterIsNotStarvedByReaders", isNotStarved(true)},
		{"ReadersAreNotStarvedByWriters", isNotStarved(false)},
		{"KeepsAlive", rwKeepsAlive},
		{"LateReaderIsHarmless", isLate(false)},
		{"LateWriterIsHarmless", isLate(true)},
		{"DeadReaderDoesNotBlockTheWriterForever", deadReader},
		{"DeadWriterDoesNotBlockTheReadersForever", deadWriter},
		{"DeadWaiterDoesNotBlockTheReadersForever", deadWaiter},
		{"BlackHoleIsReportedBeforeTheNextGrant", rwBlackHole},
		{"MutualExclusion", rwMutualExclusion},
		{"WaitersLeaveNothing", rwWaitersLeaveNothing},
	}
	for _, c := range append(exclusiveCases(), sharedCases()...) {
		cases = append(cases, caseOf[RWHarness]{c.name, func(ctx context.Context, t testing.TB, h RWHarness, key string) {
			eachSide(key, func(key string, write bool) { c.fn(ctx, t, h.locker(write), key) })
		}})
	}
	return cases
}

// locker is the harness of the writer's side, or of the reader's, where others write.
func (h RWHarness) locker(write bool) Harness {
	one := func(t testing.TB, l dlock.RWLocker) dlock.Locker { return tracked{own(l).(dlock.RWLocker), t} }
	l := Harness{
		New: func(t testing.TB) dlock.Locker { return one(t, h.New(t)) },
		TTL: h.TTL, Expire: h.Expire, Answers: h.Answers, waiters: h.Waiting,
		Behind: through(h.Behind, one),
		as: func(l dlock.Locker) dlock.Locker {
			own := l.(tracked)
			return tracked{side(own.Locker.(dlock.RWLocker), write), own.t}
		},
	}
	if h.Capped != nil {
		l.Capped = func(t testing.TB, limit time.Duration) dlock.Locker { return one(t, h.Capped(t, limit)) }
	}
	if h.Other != nil {
		l.Other = func(t testing.TB, ttl time.Duration) dlock.Locker { return one(t, h.Other(t, ttl)) }
	}
	return l
}

// RunRW checks every promise of [dlock.RWLocker].
func RunRW(t *testing.T, h RWHarness) {
	t.Helper()
	open := h.New
	h.New = func(t testing.TB) dlock.RWLocker { return trackedRW{open(t), t} }
	h.Behind = through(h.Behind, func(t testing.TB, l dlock.RWLocker) dlock.RWLocker { return trackedRW{l, t} })
	run(t, rwCases(), h, h.TTL, 0, h.Bubble)
}

// trackedRW releases what a failing case leaves behind, as tracked does.
type trackedRW struct {
	dlock.RWLocker
	t testing.TB
}

// Acquire implements [dlock.Locker].
func (l trackedRW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return tracked{l.RWLocker, l.t}.Acquire(ctx, key)
}

// TryAcquire implements [dlock.Locker].
func (l trackedRW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return tracked{l.RWLocker, l.t}.TryAcquire(ctx, key)
}

// AcquireRead implements [dlock.RWLocker].
func (l trackedRW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return tracked{reader{l.RWLocker}, l.t}.Acquire(ctx, key)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l trackedRW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return tracked{reader{l.RWLocker}, l.t}.TryAcquire(ctx, key)
}

func (l trackedRW) own() any { return l.RWLocker }

// reader is the reader's side of l as a Locker.
type reader struct{ l dlock.RWLocker }

// Acquire implements [dlock.Locker].
func (r reader) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return r.l.AcquireRead(ctx, key)
}

// TryAcquire implements [dlock.Locker].
func (r reader) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return r.l.TryAcquireRead(ctx, key)
}

// side returns the writer's or the reader's side of l.
func side(l dlock.RWLocker, write bool) dlock.Locker {
	if write {
		return l
	}
	return reader{l}
}

// eachSide runs f for a writer and for a reader, each with a key of its own.
func eachSide(key string, f func(key string, write bool)) {
	f(key+"-w", true)
	f(key+"-r", false)
}

// rwTake takes key for a writer or a reader, within ten TTLs.
func rwTake(ctx context.Context, t testing.TB, h RWHarness, key string, write bool) *dlock.Lease {
	t.Helper()
	return acquire(ctx, t, Harness{TTL: h.TTL}, side(h.New(t), write), key)
}

// rwWantFree checks that a writer can have key now.
func rwWantFree(ctx context.Context, t testing.TB, h RWHarness, key string) {
	t.Helper()
	release(ctx, t, tryAcquire(ctx, t, h.New(t), key))
}

// rwWantHeld checks that a writer, or also a reader, would have to wait.
func rwWantHeld(ctx context.Context, t testing.TB, h RWHarness, key string, readersToo bool) {
	t.Helper()
	l := h.New(t)
	_, err := l.TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)
	if readersToo {
		_, err = l.TryAcquireRead(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
	}
}

// queued returns once n wait for key.
func (h RWHarness) queued(ctx context.Context, t testing.TB, key string, n int) {
	t.Helper()
	Harness{TTL: h.TTL, waiters: h.Waiting}.queued(ctx, t, key, n)
}
