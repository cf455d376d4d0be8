package dlocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// blackHole cuts the holder off at random phases of its renewal. The holder must
// know before anyone else can hold the key.
func blackHole(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	cutOff, link := h.Behind(t)
	next := h.New(t)
	for range 3 {
		lease := acquire(ctx, t, h, cutOff, key)
		phase := rand.N(h.TTL)
		pause(ctx, phase)
		wantErr(t, lease.Err(), nil)
		link.Cut()
		cut := time.Now()
		second := acquire(ctx, t, h, next, key)
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
}

// blackHoleAcquire gives up an attempt that reaches the store after its own rollback.
func blackHoleAcquire(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	l, link := h.Behind(t)
	release(ctx, t, acquire(ctx, t, h, l, key)) // connected
	link.Cut()
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, h.TTL/4)
	defer cancel()
	_, err := l.Acquire(short, key)
	wantErr(t, err, dlock.ErrUncertain)
	wantErr(t, err, context.DeadlineExceeded)
	if d := time.Since(start); d > h.TTL {
		t.Errorf("Acquire returned %v after the deadline", d-h.TTL/4)
	}
	link.Heal()
	healed := time.Now()
	lease := acquire(ctx, t, h, h.New(t), key)
	if d := time.Since(healed); d > 2*h.TTL/3 {
		t.Errorf("the key was free only after %v; the TTL is %v", d, h.TTL)
	}
	release(ctx, t, lease)
}

// replyLostAcquire lets the store grant the key to a client that is never notified of it.
func replyLostAcquire(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	for _, take := range []func(dlock.Locker, context.Context, string) (*dlock.Lease, error){
		dlock.Locker.TryAcquire, dlock.Locker.Acquire,
	} {
		l, link := h.Behind(t)                      // what the one before has to release takes no part
		release(ctx, t, acquire(ctx, t, h, l, key)) // connected
		link.LoseReply()
		start := time.Now()
		_, err := take(l, ctx, key)
		wantErr(t, err, dlock.ErrUncertain)
		if link.Lost() != 1 {
			t.Fatal("no reply was lost, so the case proves nothing")
		}
		lease := acquire(ctx, t, h, h.New(t), key)
		if d := time.Since(start); d > 2*h.TTL/3 {
			t.Errorf("the key was free only after %v; the TTL is %v", d, h.TTL)
		}
		release(ctx, t, lease)
	}
}

// replyLostRelease lets the store release the key and drops the reply. That is not a loss.
func replyLostRelease(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	l, link := h.Behind(t)
	release(ctx, t, acquire(ctx, t, h, l, key)) // connected
	lease := acquire(ctx, t, h, l, key)
	link.LoseReply()
	err := lease.Release(ctx)
	if err == nil || errors.Is(err, dlock.ErrLost) {
		t.Errorf("Release = %v, want the error of the network", err)
	}
	if link.Lost() != 1 {
		t.Fatal("no reply was lost, so the case proves nothing")
	}
	wantFree(ctx, t, h, key)
}
