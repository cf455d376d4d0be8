package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestCallThatWasNotSent gives up while another call is under way: nothing can
// have been taken, so nothing is uncertain.
func TestCallThatWasNotSent(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, link, sent := observed(t)
		link.Cut()
		under := make(chan error, 1)
		go func() {
			_, err := l.TryAcquire(t.Context(), rand.Text())
			under <- err
		}()
		<-sent
		short, cancel := context.WithTimeout(t.Context(), ttl/20)
		defer cancel()
		if _, err := l.TryAcquire(short, rand.Text()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("TryAcquire = %v, want the end of the context and no uncertainty", err)
		}
		if err := <-under; !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("the call under way: %v, want ErrUncertain", err)
		}
		link.Heal()
	})
}

// TestCancelledCallReturnsAtOnce: a client does not interrupt a read, its caller does.
func TestCancelledCallReturnsAtOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, link, sent := observed(t)
		link.Cut()
		defer link.Heal()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cancelled := make(chan time.Time, 1)
		go func() {
			<-sent
			cancelled <- time.Now()
			cancel()
		}()
		if _, err := l.TryAcquire(ctx, rand.Text()); !errors.Is(err, context.Canceled) || !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("TryAcquire = %v, want the end of the context, and uncertainty", err)
		}
		if d := time.Since(<-cancelled); d > ttl/5 {
			t.Errorf("TryAcquire returned %v after its end", d)
		}
	})
}

// observed returns a Locker behind a proxy, and a channel that is closed when its next
// call is sent.
func observed(t testing.TB) (*redislock.Locker, dlocktest.Link, <-chan struct{}) {
	t.Helper()
	rdb, link := redistest.Proxied(t, testbedtest.Redis(t))
	l, sent := locker(t, rdb), make(chan struct{})
	load(t, l)
	tell := sync.OnceFunc(func() { close(sent) })
	rdb.AddHook(spy(func(redis.Cmder) { tell() }))
	return l, link, sent
}
