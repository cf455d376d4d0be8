package dlocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/testbed/testbedtest"
)

// mixedTTLs has clients with different TTLs hand a key on, as during a change of their configuration. A grant lasts for
// the validity of its holder, whichever client made it. A waiter counts as alive for as long as it has stored itself.
func mixedTTLs(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Other == nil {
		t.Skip("all clients have the same TTL")
	}
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
		got := make(chan result, 1)
		go func() {
			lease, err := l.Acquire(ctx, key)
			got <- result{lease, err}
		}()
		h.queuedBehind(ctx, t, first.Done(), key, waiters) // a short lease may end while a slow machine queues them
		return got
	}
	one, other := wait(h.side(long), 1), wait(short, 2)
	pause(ctx, rand.N(h.TTL/3)) // anywhere between two polls of the one
	kept := first.Release(ctx) == nil
	var a, b result
	select {
	case a = <-one:
		wantErr(t, a.err, nil)
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
		if h.FIFO && kept {
			t.Error("who came later was granted the key first")
		}
		if b.err == nil {
			_ = b.lease.Release(ctx)
		}
		a = <-one
	}
	for _, got := range []result{a, b} {
		if got.err != nil && !errors.Is(got.err, dlock.ErrUncertain) {
			t.Fatalf("Acquire: %v", got.err)
		}
		if got.lease != nil {
			_ = got.lease.Release(ctx)
		}
	}
	return kept
}
