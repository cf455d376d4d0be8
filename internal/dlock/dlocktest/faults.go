package dlocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func blackHole(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	next := h.New(t)
	for range 3 {
		cutOff(ctx, t, h.TTL, link,
			func() (*dlock.Lease, error) { return l.Acquire(ctx, key) },
			func() *dlock.Lease { return acquire(ctx, t, h, next, key) })
	}
}

// cutOff cuts a holder off at a random phase of its renewal. The holder must know before anyone else can hold what it has.
// hold may fail for a while after an earlier cut, until what was sent then has timed out.
func cutOff(ctx context.Context, t testing.TB, ttl time.Duration, link Link, hold func() (*dlock.Lease, error), next func() *dlock.Lease) {
	t.Helper()
	var lease *dlock.Lease
	testbedtest.Eventually(t, "a lease of the client that is cut off", func() bool {
		var err error
		lease, err = hold()
		return err == nil
	})
	phase := rand.N(ttl)
	pause(ctx, phase)
	wantErr(t, lease.Err(), nil)
	link.Cut()
	cut := time.Now()
	second := next()
	granted := time.Since(cut)
	select {
	case <-lease.Done():
		t.Logf("cut off after %v: the next grant came %v later", phase, granted)
	default:
		t.Fatalf("cut off after %v: granted to another %v later, and the holder does not know", phase, granted)
	}
	wantErr(t, lease.Err(), dlock.ErrLost)
	link.Heal()
	release(ctx, t, second)
}

// blackHoleAcquire gives up an attempt that disappears on its way, and whose outcome the client cannot know. replyLostAcquire is for one that
// has arrived. The deadline is before the timeout that a backend has of its own: TTL/6 at least.
func blackHoleAcquire(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	release(ctx, t, acquire(ctx, t, h, l, key)) // connected
	link.Cut()
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, h.TTL/8)
	defer cancel()
	_, err := l.Acquire(short, key)
	wantErr(t, err, dlock.ErrUncertain)
	wantErr(t, err, context.DeadlineExceeded)
	if d := time.Since(start); d > h.TTL {
		t.Errorf("Acquire returned %v after the deadline", d-h.TTL/8)
	}
	link.Heal()
	healed := time.Now()
	wantFreeSoon(ctx, t, h, h.New(t), key, healed)
}

// replyLostAcquire lets the store grant the key to a client that is never notified of it.
func replyLostAcquire(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	for _, take := range []func(dlock.Locker, context.Context, string) (*dlock.Lease, error){
		dlock.Locker.TryAcquire, dlock.Locker.Acquire,
	} {
		l, link := h.Behind(t)                      // what the one before has to release takes no part
		release(ctx, t, acquire(ctx, t, h, l, key)) // connected
		link.LoseReply()
		start := time.Now()
		_, err := take(h.side(l), ctx, key)
		wantErr(t, err, dlock.ErrUncertain)
		wantLostReply(t, link)
		wantFreeSoon(ctx, t, h, h.New(t), key, start)
	}
}

// replyLostRelease lets the store release the key and drops the reply. That is not a loss.
func replyLostRelease(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	release(ctx, t, acquire(ctx, t, h, l, key)) // connected
	lease := acquire(ctx, t, h, l, key)
	link.LoseReply()
	err := lease.Release(ctx)
	if err == nil || errors.Is(err, dlock.ErrLost) {
		t.Errorf("Release = %v, want the error of the network", err)
	}
	wantLostReply(t, link)
	wantFree(ctx, t, h, key)
}

// mixedTTLs has clients hand a key on whose leases last differently long, as while their
// configuration is changed one after the other. A grant lasts for the validity of its
// holder, whichever client made it. A waiter lives for as long as it has stored itself.
func mixedTTLs(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Other != nil, "all clients have the same TTL")
	short, long := h.Other(t, h.TTL/4), h.Other(t, 2*h.TTL)
	for range 3 {
		for tries := 0; !passedOn(ctx, t, h, short, long, key); tries++ {
			if tries == 9 {
				t.Fatal("a lease is never kept until its release")
			}
		}
	}
}

// passedOn reports false if the machine was too slow for the leases to be kept.
func passedOn(ctx context.Context, t testing.TB, h Harness, short, long dlock.Locker, key string) bool {
	t.Helper()
	first := acquire(ctx, t, h, short, key)
	wait := func(l dlock.Locker, waiters int) <-chan result {
		got := acquiring(ctx, l, key)
		h.queuedBehind(ctx, t, first.Done(), key, waiters) // a short lease may end while a slow machine queues them
		return got
	}
	one, other := wait(h.side(long), 1), wait(short, 2)
	pause(ctx, rand.N(h.TTL/3)) // anywhere between two polls of the one
	kept := first.Release(ctx) == nil
	var a, b result
	select {
	case a = <-one:
		if a.err != nil {
			b = <-other
			break
		}
		select {
		case b = <-other:
			if b.err == nil && a.lease.Err() == nil {
				testbedtest.Final(t, "granted to another while the holder considers its lease valid")
			}
		case <-time.After(h.TTL):
			wantErr(t, a.lease.Err(), nil)
		}
		_ = a.lease.Release(ctx)
		if b.lease == nil && b.err == nil {
			b = <-other
		}
	case b = <-other:
		if h.FIFO && kept && b.err == nil {
			t.Error("who came later was granted the key first")
		}
		if b.err == nil {
			_ = b.lease.Release(ctx)
		}
		a = <-one
	}
	for _, got := range []result{a, b} {
		if got.err != nil && !late(got.err) {
			t.Fatalf("Acquire: %v", got.err)
		}
		kept = kept && got.err == nil
		if got.lease != nil {
			_ = got.lease.Release(ctx)
		}
	}
	return kept
}
