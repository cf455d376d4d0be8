package dlocktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// sharedCases are promises of every lease, whatever it is of: a lock, one permit, or a
// side of a read/write lock.
func sharedCases() []caseOf[Harness] {
	return []caseOf[Harness]{
		{"KeysAreIndependent", keysAreIndependent},
		{"BlockingOnEndDelaysNobody", blockingOnEnd},
		{"CloseInsideOnEnd", closeInsideOnEnd},
		{"CloseEndsAllLeases", closeEndsAllLeases},
		{"ReentryAfterAnUncertainPoll", reentryAfterUncertainPoll},
		{"MixedTTLsNeverOverlap", mixedTTLs},
		{"CauseIsNoAnswer", causeIsNoAnswer},
		{"CauseLeavesNoWaiter", causeLeavesNoWaiter},
		{"RefusedReleaseIsRepeated", refusedRelease},
		{"ForeignValueIsAHolder", foreignValue},
	}
}

// exclusiveCases are promises of a lock, and of both sides of a read/write lock.
func exclusiveCases() []caseOf[Harness] {
	return []caseOf[Harness]{
		{"ReleaseFrees", releaseFrees},
		{"DeadContextAcquiresNothing", deadContextAcquires},
		{"DeadContextStillReleases", deadContextReleases},
		{"LossIsReported", lossIsReported},
		{"ReplyLostAcquireLeavesNothing", replyLostAcquire},
		{"MaxHoldEndsAllLeases", maxHoldEndsAllLeases},
	}
}

// side returns what l is tested as, which is l itself unless it has several sides.
func (h Harness) side(l dlock.Locker) dlock.Locker {
	if h.as == nil {
		return l
	}
	return h.as(l)
}

// causes returns reasons to cancel a context that look like a reply of a store or the outcome of an acquisition. They
// are the errors of a sibling that has failed.
func (h Harness) causes() []error {
	return append([]error{
		fmt.Errorf("a sibling: %w", dlock.ErrUncertain),
		fmt.Errorf("a sibling: %w", dlock.ErrHeld),
		fmt.Errorf("a sibling: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		fmt.Errorf("a sibling: %w", sql.ErrNoRows),
	}, h.Answers...)
}

// attempt is one Acquire that is going to be cancelled with a cause.
type attempt struct {
	key   string
	cause error
	end   context.CancelCauseFunc
	err   chan error
}

// attempts has each of lockers acquire a key of its own, for another cause.
func attempts(ctx context.Context, key string, lockers []dlock.Locker, causes []error) []attempt {
	all := make([]attempt, len(causes))
	for i, cause := range causes {
		caused, end := context.WithCancelCause(ctx)
		all[i] = attempt{key: fmt.Sprint(key, "-", i), cause: cause, end: end, err: make(chan error, 1)}
		go func() {
			lease, err := lockers[i].Acquire(caused, all[i].key)
			if err == nil {
				lease.Release(ctx)
			}
			all[i].err <- err
		}()
	}
	return all
}

// cancel ends all of them, and returns what each says, which has to name its cause.
func cancel(ctx context.Context, t testing.TB, all []attempt) []error {
	t.Helper()
	errs := make([]error, len(all))
	for _, a := range all {
		a.end(a.cause)
	}
	for i, a := range all {
		select {
		case errs[i] = <-a.err:
		case <-ctx.Done():
			t.Fatalf("cancelled with %v: Acquire continues", a.cause)
		}
		wantErr(t, errs[i], context.Canceled)
		wantErr(t, errs[i], a.cause)
	}
	return errs
}

// causeIsNoAnswer cancels requests that the store has not answered. They arrive later,
// and what they take is released, whatever the callers had for a reason.
func causeIsNoAnswer(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	causes := h.causes()
	lockers, links := make([]dlock.Locker, len(causes)), make([]Link, len(causes))
	for i := range causes {
		l, link := h.Behind(t)
		lockers[i], links[i] = h.side(l), link
		release(ctx, t, acquire(ctx, t, h, lockers[i], fmt.Sprint(key, "-", i))) // connected
		link.Cut()
	}
	all := attempts(ctx, key, lockers, causes)
	pause(ctx, h.TTL/10)
	for i, err := range cancel(ctx, t, all) {
		if !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("cancelled with %v: Acquire = %v, want ErrUncertain", causes[i], err)
		}
		links[i].Heal()
	}
	healed := time.Now()
	next := h.New(t)
	for _, a := range all {
		t.Logf("cancelled with %v", a.cause)
		wantFreeSoon(ctx, t, h, next, a.key, healed)
	}
}

// causeLeavesNoWaiter cancels waiters: none is left, whatever the reason.
func causeLeavesNoWaiter(ctx context.Context, t testing.TB, h Harness, key string) {
	causes := h.causes()
	holder, l := h.New(t), h.side(h.New(t))
	lockers, leases := make([]dlock.Locker, len(causes)), make([]*dlock.Lease, len(causes))
	for i := range causes {
		lockers[i] = l
		leases[i] = acquire(ctx, t, h, holder, fmt.Sprint(key, "-", i))
	}
	all := attempts(ctx, key, lockers, causes)
	for _, a := range all {
		h.queued(ctx, t, a.key, 1)
	}
	errs := cancel(ctx, t, all)
	for i, a := range all {
		release(ctx, t, leases[i])
		t.Logf("Acquire = %v", errs[i])
		wantFreeSoon(ctx, t, h, holder, a.key, time.Now())
	}
}

// refusedRelease breaks the network for the moment of a release.
func refusedRelease(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	behind, link := h.Behind(t)
	need(t, link.Refuse != nil, "the network refuses nothing")
	lease := acquire(ctx, t, h, h.side(behind), key)
	link.Refuse()
	err := lease.Release(ctx)
	link.Heal()
	healed := time.Now()
	if errors.Is(err, dlock.ErrLost) {
		t.Errorf("Release = %v, want the error of the network", err)
	}
	wantFreeSoon(ctx, t, h, h.New(t), key, healed)
}

// foreignValue has something in the place of a holder that no client has put there.
func foreignValue(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Foreign != nil, "nothing else can be in the place of a holder")
	l := h.New(t)
	h.Foreign(t, key)
	short, cancel := context.WithTimeout(ctx, h.TTL)
	defer cancel()
	_, err := l.TryAcquire(short, key)
	wantErr(t, err, dlock.ErrHeld)
	waited, stop := context.WithTimeout(ctx, h.TTL/2)
	defer stop()
	_, err = l.Acquire(waited, key)
	wantErr(t, err, context.DeadlineExceeded)
	if in, ok := own(l).(dlock.Inspector); ok {
		if state, err := in.Inspect(ctx, key); err != nil || !state.Held {
			t.Errorf("Inspect = %+v, %v, want that it is held", state, err)
		}
	}
	if force, ok := own(l).(dlock.ForceReleaser); ok {
		wantErr(t, force.ForceRelease(ctx, key), nil)
	} else {
		h.Expire(t, key)
	}
	wantFree(ctx, t, h, key)
}
