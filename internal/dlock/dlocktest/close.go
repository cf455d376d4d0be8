package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// closeEndsAllLeases closes a client with leases out, while others wait for their keys. The leases are new, renewed,
// entered again, and of several keys.
func closeEndsAllLeases(ctx context.Context, t testing.TB, h Harness, key string) {
	l := h.New(t)
	end, mine := optional[closer](t, l), h.side(l)
	old := acquire(ctx, t, h, mine, key+"-old")
	pause(ctx, h.TTL/2)
	leases := []*dlock.Lease{old, acquire(ctx, t, h, mine, key+"-new")}
	if h.Reentrant {
		outer := acquire(ctx, t, h, mine, key+"-nested")
		leases = append(leases, nested(ctx, t, mine, outer, key+"-nested"))
		release(ctx, t, outer)
	}
	if own, ok := own(l).(dlock.MultiLocker); ok {
		lease, err := own.AcquireAll(ctx, []string{key + "-a", key + "-b"})
		wantErr(t, err, nil)
		leases = append(leases, lease)
	}
	if _, ok := own(l).(dlock.EachLocker); ok {
		leases = append(leases, each(ctx, t, l, []string{key + "-c", key + "-d"}, key+"-c", key+"-d"))
	}
	h.closing(ctx, t, h.New(t), leases, end)
	again, err := mine.TryAcquire(ctx, key+"-later")
	if err == nil {
		wantErr(t, again.Err(), dlock.ErrLost)
	}
}

// closing ends a client, while somebody waits for each key of its leases.
func (h Harness) closing(ctx context.Context, t testing.TB, other dlock.Locker, leases []*dlock.Lease, end closer) {
	t.Helper()
	type grant struct {
		of, lease  *dlock.Lease
		validUntil bool // whether the holder before considered its lease valid then
		err        error
	}
	grants, waiting := make(chan grant), 0
	for _, lease := range leases {
		for _, key := range lease.Keys() {
			waiting++
			go func() {
				next, err := other.Acquire(ctx, key)
				grants <- grant{lease, next, lease.Err() == nil, err}
			}()
		}
	}
	pause(ctx, h.TTL/10) // for them to queue
	outcomes := make(chan error, len(leases))
	for _, lease := range leases {
		lease.OnEnd(func(outcome error) { outcomes <- outcome })
	}
	closed := time.Now()
	if err := end.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, lease := range leases {
		wantReason(t, lease.Err(), dlock.Closed)
	}
	for range leases {
		wantErr(t, within(t, outcomes, h.TTL, "OnEnd is not called"), dlock.ErrLost)
	}
	for range waiting {
		g := <-grants
		if g.validUntil {
			testbedtest.Final(t, "%q was granted to another, and the holder considers its lease valid", g.of.Keys())
		}
		if g.err != nil {
			t.Errorf("Acquire: %v", g.err)
			continue
		}
		release(ctx, t, g.lease)
	}
	if d := time.Since(closed); d > 2*h.TTL/3 {
		t.Errorf("the keys were free only %v after Close; the TTL is %v", d, h.TTL)
	}
}
