package dlocktest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func eachCases() []caseOf[Harness] {
	return []caseOf[Harness]{
		{"TryAcquireEachTakesWhatIsFree", eachTakesWhatIsFree},
		{"TryAcquireEachDoesNotOvertake", eachDoesNotOvertake},
		{"TryAcquireEachLosesAllWithOne", eachLosesAllWithOne},
		{"TryAcquireEachIsReentrant", eachIsReentrant},
		{"ReplyLostTryAcquireEachLeavesNothing", replyLostEach},
	}
}

// each takes those of keys that are free, which must be want. It repeats an attempt whose request took too long, as
// patiently does.
func each(ctx context.Context, t testing.TB, l dlock.Locker, keys []string, want ...string) *dlock.Lease {
	t.Helper()
	able := optional[dlock.EachLocker](t, l)
	lease, err := patiently(t, func() (*dlock.Lease, error) {
		lease, err := able.TryAcquireEach(ctx, keys)
		if err != nil && lease != nil {
			lease.Release(ctx)
		}
		return lease, err
	})
	wantErr(t, err, nil)
	if lease == nil {
		if len(want) > 0 {
			t.Fatalf("TryAcquireEach(%q) has no lease, want %q", keys, want)
		}
		return nil
	}
	t.Cleanup(func() { lease.Release(t.Context()) })
	if got := lease.Keys(); !slices.Equal(got, want) {
		t.Fatalf("TryAcquireEach(%q) has %q, want %q", keys, got, want)
	}
	return lease
}

// eachTakesWhatIsFree: a held key is left out, each key is taken once, and nothing but the keys of the lease is held.
func eachTakesWhatIsFree(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b, c := key+"-a", key+"-b", key+"-c"
	l := h.New(t)
	first := each(ctx, t, l, []string{c, a, b, a}, a, b, c)
	if got := each(ctx, t, h.New(t), []string{a, b, c}); got != nil {
		t.Errorf("keys of another owner are granted: %q", got.Keys())
	}
	release(ctx, t, first)
	holder := acquire(ctx, t, h, h.New(t), b)
	second := each(ctx, t, l, []string{a, b, c}, a, c)
	for _, key := range second.Keys() {
		if f, last := second.FenceOf(key), first.FenceOf(key); f.Token <= last.Token || f.Owner == last.Owner {
			testbedtest.Final(t, "fence %+v of %q follows %+v", f, key, last)
		}
		_, err := h.New(t).TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
	}
	pause(ctx, 3*h.TTL/2) // all are kept alive
	wantErr(t, second.Err(), nil)
	release(ctx, t, second)
	for _, key := range []string{a, c} {
		wantFree(ctx, t, h, key)
	}
	wantErr(t, holder.Err(), nil)
	lease, err := optional[dlock.EachLocker](t, l).TryAcquireEach(ctx, nil)
	if lease != nil || err == nil {
		t.Errorf("without keys: %v, %v, want an error", lease, err)
	}
}

// eachDoesNotOvertake: a key whose holder has died goes to its waiter.
func eachDoesNotOvertake(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.FIFO, "there is no queue")
	l, a, b := h.New(t), key+"-a", key+"-b"
	optional[dlock.EachLocker](t, l)
	holder := acquire(ctx, t, h, h.New(t), b)
	waiter := acquiring(ctx, h.New(t), b)
	h.queued(ctx, t, b, 1)
	h.Expire(t, b)
	release(ctx, t, each(ctx, t, l, []string{a, b}, a))
	next := within(t, waiter, 3*h.TTL, "the waiter is not granted the key")
	wantErr(t, next.err, nil)
	release(ctx, t, next.lease)
	waitDone(t, holder, h.TTL)
}

// eachLosesAllWithOne: the loss of one key ends the lease, and nobody keeps the others alive.
func eachLosesAllWithOne(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b := key+"-a", key+"-b"
	force := optional[dlock.ForceReleaser](t, h.New(t))
	lease := each(ctx, t, h.New(t), []string{a, b}, a, b)
	wantErr(t, force.ForceRelease(ctx, b), nil)
	waitDone(t, lease, h.TTL)
	wantReason(t, lease.Err(), dlock.Forced)
	if lost, ok := errors.AsType[*dlock.LostError](lease.Err()); ok && (lost.Key != b || lost.Fence != lease.FenceOf(b)) {
		t.Errorf("loss = %v, want that of %q", lost, b)
	}
	wantErr(t, lease.Release(ctx), dlock.ErrLost)
	release(ctx, t, acquire(ctx, t, h, h.New(t), a))
}

func eachIsReentrant(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	a, b, c := key+"-a", key+"-b", key+"-c"
	l := h.New(t)
	outer := each(ctx, t, l, []string{a, b}, a, b)
	within, cancel := outer.Context(ctx)
	defer cancel()
	inner := each(within, t, l, []string{b, b}, b)
	if inner.FenceOf(b) != outer.FenceOf(b) {
		t.Errorf("fence = %v, want that of the outer lease: %v", inner.FenceOf(b), outer.FenceOf(b))
	}
	lease, err := optional[dlock.EachLocker](t, l).TryAcquireEach(within, []string{b, c})
	wantErr(t, err, dlock.ErrReentry)
	if lease != nil {
		t.Errorf("%q is granted with the refusal", lease.Keys())
	}
	wantFree(ctx, t, h, c)
	release(ctx, t, outer)
	if got := each(ctx, t, h.New(t), []string{b}); got != nil {
		t.Errorf("the key of the inner lease is granted to another")
	}
	release(ctx, t, inner)
	wantFree(ctx, t, h, b)
}

// replyLostEach loses the reply of the store to a grant of all keys. They are free long before their TTL.
func replyLostEach(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	a, b := key+"-a", key+"-b"
	l, link := h.Behind(t)
	warm := each(ctx, t, l, []string{a, b}, a, b) // connected
	release(ctx, t, warm)
	link.LoseReply()
	start := time.Now()
	lease, err := optional[dlock.EachLocker](t, l).TryAcquireEach(ctx, []string{a, b})
	wantErr(t, err, dlock.ErrUncertain)
	if lease != nil {
		t.Errorf("the lease has %q, want none", lease.Keys())
	}
	wantLostReply(t, link)
	other := h.New(t)
	wantFreeSoon(ctx, t, h, other, a, start)
	wantFreeSoon(ctx, t, h, other, b, start)
}
