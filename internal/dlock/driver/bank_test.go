package driver_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// bank is a store with one key, which takes a second to answer.
type bank struct {
	driver.Turns

	free     chan struct{} // has an element while nobody holds the key
	token    uint64
	ttl      time.Duration // 0: an hour
	renewer  dlock.Renewer
	early    bool // the store has a grant for a waiter, too
	maxHold  time.Duration
	unshared bool
	unheard  error // of each release, which the store has done

	mu      sync.Mutex
	failing error
	panics  bool
	grants  int
	ended   int
}

// set makes the store fail, or panic, or work again.
func (b *bank) set(failing error, panics bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing, b.panics = failing, panics
}

func newBank() *bank {
	b := &bank{free: make(chan struct{}, 1)}
	b.free <- struct{}{}
	return b
}

func (b *bank) acquire(ctx context.Context) (*dlock.Lease, error) { return b.Acquire(ctx, "k", b.take) }

func (b *bank) take(_ context.Context, s *driver.Share) (*dlock.Lease, driver.Wait, error) {
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.panics:
		panic("in the store")
	case b.failing != nil:
		return nil, nil, b.failing
	}
	if b.unshared {
		s = nil
	}
	return nil, func(ctx context.Context) (lease *dlock.Lease, err error) {
		if b.early {
			lease = b.grant(ctx, s)
		}
		select {
		case <-b.free:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !b.early {
			lease = b.grant(ctx, s)
		}
		return lease, nil
	}, nil
}

func (b *bank) grant(ctx context.Context, s *driver.Share) *dlock.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grants++
	b.token += driver.TurnsPerGrant
	return dlock.NewLease(ctx, s.Of(dlock.Grant{
		Key: "k", Fence: dlock.Fence{Token: b.token, Owner: "o"}, Sent: time.Now(),
		TTL: cmp.Or(b.ttl, time.Hour), MaxHold: b.maxHold, Renewer: b.renewer,
		Release: func(context.Context) error { b.free <- struct{}{}; return b.unheard },
		Ended: func(error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ended++
		},
	}))
}

// bubble runs f on fake time with a new store, which is free again at the end.
func bubble(t *testing.T, f func(t *testing.T, b *bank)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		f(t, b)
		synctest.Wait()
		if len(b.free) != 1 || b.Waiting("k") != 0 || b.ended != b.grants {
			t.Errorf("of %d grants %d have ended, %d wait", b.grants, b.ended, b.Waiting("k"))
		}
	})
}

func (b *bank) hold(t *testing.T) *dlock.Lease {
	t.Helper()
	lease, err := b.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func giveBack(t *testing.T, l *dlock.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
