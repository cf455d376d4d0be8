package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// need skips a case if the backend lacks what it is about.
func need(t testing.TB, has bool, lack string) {
	t.Helper()
	if !has {
		t.Skip(lack)
	}
}

// within returns what comes from c, which has to come within d.
func within[T any](t testing.TB, c <-chan T, d time.Duration, late string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(d):
		t.Fatalf("%s after %v", late, d)
	}
	return got
}

// waitDone waits for the end of lease for d at most.
func waitDone(t testing.TB, lease *dlock.Lease, d time.Duration) {
	t.Helper()
	within(t, lease.Done(), d, "the lease has not ended")
}

func wantErr(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("error = %v, want %v", got, want)
	}
}

// wantReason checks that err is a loss with that reason.
func wantReason(t testing.TB, err error, reason dlock.Reason) {
	t.Helper()
	if lost, ok := errors.AsType[*dlock.LostError](err); !ok || lost.Reason != reason {
		t.Errorf("error = %v, want a loss with the reason %q", err, reason)
	}
}

// wantLostReply checks that one reply was lost.
func wantLostReply(t testing.TB, link Link) {
	t.Helper()
	if link.Lost() != 1 {
		t.Fatal("no reply was lost, so the case proves nothing")
	}
}

// wantFree checks that key is free now.
func wantFree(ctx context.Context, t testing.TB, h Harness, key string) {
	t.Helper()
	release(ctx, t, tryAcquire(ctx, t, h.New(t), key))
}

// wantFreeSoon checks that key is free before a TTL after start could have freed it.
func wantFreeSoon(ctx context.Context, t testing.TB, h Harness, l dlock.Locker, key string, start time.Time) {
	t.Helper()
	lease := acquire(ctx, t, h, l, key)
	wantSoon(t, h.TTL, start)
	release(ctx, t, lease)
}

// wantWait checks that take waits for the release of held, a while from now. It returns what take has taken.
func wantWait(ctx context.Context, t testing.TB, held *dlock.Lease, while time.Duration, take func() *dlock.Lease) *dlock.Lease {
	t.Helper()
	released, start := make(chan error, 1), time.Now()
	time.AfterFunc(while, func() { released <- held.Release(ctx) })
	next := take()
	if d := time.Since(start); d < while {
		t.Errorf("acquired after %v, while it was held", d)
	}
	wantErr(t, <-released, nil)
	return next
}

// wantSoon checks that a key was free before a TTL after start could have freed it.
func wantSoon(t testing.TB, ttl time.Duration, start time.Time) {
	t.Helper()
	if d := time.Since(start); d > 2*ttl/3 {
		t.Errorf("the key was free only after %v; the TTL is %v", d, ttl)
	}
}
